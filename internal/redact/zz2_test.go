package redact

import (
	"strings"
	"testing"
	"unicode/utf8"
	"pgregory.net/rapid"
)

var frags = []string{"cpf","CPF","CNS","carteira","telefone","email","nome","paciente","Beneficiário","name","nascimento","prontuário","endereco",
"protocolo","guias","NSU","CLM-","key","cnpj","CNPJ","Maria","da","Silva","JOSE","não","inválido","foo","Bar","fooBar","nomeBeneficiario","numeroCarteira","e","de",
"12345678909","123.456.789-09","12345678900","123","45","6","789","1234","4111111111111111","4111","1111","11","91234","5678","0001","55","2025","01","12","10","40","700","0000","0005","898001160660761","123456789","99","192","168",
" "," "," ",".","-","/",",",":","=","\"","'","<",">","</","(",")","+","@","_",";","&","%","%20","%40","%22","&quot;","\\\"","\\u0022","[CPF]","[NAME]","[","]","{","}","\n","\u200b","\u00a0","x.com","com","br","://","http","?","#","R$","$","T","Z","deadbeef","a1b2c3d4","-e89b-12d3-a456-","426614174000","\x1b[31m","\xe3","\\","&amp;","%25","o","A","CDATA[","<![CDATA[", "[E-MAIL]","[CARD]","[PHONE]", "X", "http://h/", "whatsapp.net","RG", "123456", "12345678","1234567890"}

func TestIdem(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := strings.Join(rapid.SliceOfN(rapid.SampledFrom(frags), 1, 25).Draw(t, "s"), "")
		o := Text(s)
		if o2 := Text(o); o2 != o { t.Fatalf("\n in %q\n 1  %q\n 2  %q", s, o, o2) }
		if utf8.ValidString(s) && !utf8.ValidString(o) { t.Fatal("utf8") }
		for _, m := range []int{1,5,20,60} {
			l := Line(s, m)
			if len(l) > m { t.Fatal("long") }
			if want := cut(inert(o), m); l != want { t.Fatalf("%q %d: %q want %q", s, m, l, want) }
		}
	})
}
