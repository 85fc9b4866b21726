package decision_test

import (
	"testing"

	"retry-worker/internal/decision"
	"retry-worker/internal/decision/decisiontest"
)

// TestStatusInText: a number is an HTTP status only where one stands.
func TestStatusInText(t *testing.T) {
	c := decisiontest.Rules(byStatus("404", "404"), byStatus("429", "429"), byStatus("5xx", "5xx"))
	checkExamples(t, c, []example{
		// Announced by a word.
		{"HTTP 404", "404", "404"}, {"HTTP/1.1 404", "404", "404"}, {"HTTP/2 503", "5xx", "503"}, {"http404", "404", "404"}, {"HTTP-404", "404", "404"},
		{"status code 404", "404", ""}, {"status: 404", "404", ""}, {"status=503", "5xx", ""}, {`{"status":404,"error":"x"}`, "404", "404"}, {`"statusCode" : 429`, "429", ""},
		{"<status>404</status>", "404", ""}, {"http_status_code=500", "5xx", ""}, {"response_code: 500", "5xx", ""}, {"Response code: 502 for URL", "5xx", ""},
		{"Request failed with status code 429", "429", ""}, {"código 500", "5xx", ""}, {"c&oacute;digo 500", "5xx", ""}, {`c\u00f3digo 500`, "5xx", ""},
		{`x\nstatus 404`, "404", ""}, {"retornou com o código de 503", "5xx", ""}, {"o servidor respondeu com 502", "5xx", ""}, {"got a 503", "5xx", ""},
		{"The requested URL returned error: 404", "404", ""}, {"The remote server returned an error: (404).", "404", "404"}, {"status(404)", "404", ""},
		{"Response status code does not indicate success: 503 (Service Unavailable).", "5xx", "503"},
		// Before its own phrase, or that of its kind.
		{"<title>502 Bad Gateway</title>", "5xx", "502"}, {"foi 404 Not Found", "404", ""}, {"foi 404NOT FOUND", "404", ""}, {"xx 504 - Gateway Time-out", "5xx", ""},
		{"e 429: too many requests", "429", ""}, {"404 Client Error: x", "404", ""}, {"foi 503 Server Error: x", "5xx", ""}, {"resulted in a `503 Service Unavailable`", "5xx", ""},
		// Alone in brackets, or first.
		{"falhou [404]", "404", "404"}, {"falhou (503)", "5xx", "503"}, {"404", "404", "404"}, {" 404 ", "404", "404"}, {"404: x", "404", ""}, {"503 - x", "5xx", ""},
		// No status.
		{"lote 404", "", ""}, {"guia 503", "", ""}, {"404 guias", "", ""}, {"protocolo 404", "", ""}, {"porta 503", "", ""}, {"linha 404", "", ""}, {"page.js:404:12", "", ""},
		{"at Envio.java:503)", "", ""}, {"index.php(404): enviar()", "", ""}, {"itens[404]", "", ""}, {"(404 itens)", "", ""}, {"R$ 404", "", ""}, {"erro R$ 500", "", ""},
		{"erro. 500 guias", "", ""}, {"retornou 500 registros", "", ""}, {"got 503 bytes", "", ""}, {"erro: 500ms", "", ""}, {"response 500 ms", "", ""}, {"error; 404", "", ""},
		{"status 404.1", "", ""}, {"status 4040", "", ""}, {"status 1-404", "", ""}, {"HTTP 499", "", ""}, {"HTTP 200", "", ""}, {"HTTP 600", "", ""}, {"", "", ""},
		{"status do lote 404", "", ""}, {"404 não", "", ""}, {"[404 itens]", "", ""}, {"(404]", "", ""},
	})
}

// TestStatusBeside: the status that came beside the text is more sure than one inside; codes hold all the same.
func TestStatusBeside(t *testing.T) {
	c := decisiontest.Rules(byStatus("404", "404"), byStatus("5xx", "5xx"), byPhrase("phrase", "sem resposta"), decisiontest.Transient("429"))
	tests := []struct {
		message    string
		status     int
		want, text string
	}{
		{"", 404, "404", "404"}, {"", 503, "5xx", "503"}, {"", 599, "5xx", "599"}, {"", 200, "", ""}, {"", 600, "", ""}, {"", -404, "", ""}, {"", 0, "", ""},
		{"?", 404, "404", "404"}, {"HTTP 503", 404, "404", "404"}, {"HTTP 404", 503, "5xx", "503"}, {"HTTP 404", 200, "", ""}, {"HTTP 404", 0, "404", "404"},
		{"sem resposta", 200, "phrase", "sem resposta"}, {"sem resposta", 500, "5xx", "500"}, {"429", 200, "429", "429"}, {"429", 404, "404", "404"},
	}
	for _, tt := range tests {
		if m := c.Classify(tt.message, tt.status); m.Name != tt.want || m.Text != tt.text {
			t.Errorf("%q with %d is matched by %q at %q, want %q at %q", tt.message, tt.status, m.Name, m.Text, tt.want, tt.text)
		}
	}
}

// TestStatusGroups: a status before its hundred, as listed.
func TestStatusGroups(t *testing.T) {
	c := decisiontest.Rules(byStatus("501", "501"), byStatus("5xx", "5xx"), byStatus("500", "500"), byStatus("1xx", "1xx"))
	for status, want := range map[int]string{499: "", 500: "5xx", 501: "501", 502: "5xx", 599: "5xx", 600: "", 99: "", 100: "1xx", 199: "1xx", 200: ""} {
		if m := c.Classify("x", status); m.Name != want {
			t.Errorf("%d is matched by %q, want %q", status, m.Name, want)
		}
	}
}

// TestTISSCodes: a number is a code of table 38 only where the message says so.
func TestTISSCodes(t *testing.T) {
	c := decisiontest.Rules(byTISSCode("1308", "1308"), byTISSCode("50xx", "50xx"), byTISSCode("14xx", "14xx"), byTISSCode("20xx", "20xx"))
	checkExamples(t, c, []example{
		// Its element.
		{"<codigoGlosa>1308</codigoGlosa>", "1308", "1308"}, {"<ans:codigoGlosa>5014</ans:codigoGlosa>", "50xx", "5014"}, {"<ans:tipoGlosa> 1402", "14xx", ""},
		{`<codigoGlosa xmlns="http://www.ans.gov.br/padroes/tiss">1308<`, "1308", ""}, {"&lt;codigoGlosa&gt;1308&lt;/codigoGlosa&gt;", "1308", ""}, {`\u003ccodigoGlosa\u003e1308`, "1308", ""},
		{"codigoErro: 5014", "50xx", ""}, {`"codigoErro":"5014"`, "50xx", ""}, {"codigoErro=5014", "50xx", ""}, {`{"codigo_glosa": 1308}`, "1308", ""}, {"CODIGO_ERRO = 5014", "50xx", ""},
		{"<codigo>1308</codigo>", "1308", ""}, {`"codigo": "1308"`, "1308", ""}, {"Código: 1308", "1308", ""}, {"code: 5014", "50xx", ""},
		// A noun.
		{"glosa 1402", "14xx", "1402"}, {"Glosa: 1402", "14xx", ""}, {"glosa nº 1308", "1308", ""}, {"Glosa n.º 1308", "1308", ""}, {"glosa (1308)", "1308", ""}, {"glosa-1308", "1308", ""},
		{"código da glosa: 1308", "1308", ""}, {"c&oacute;digo do erro 5014", "50xx", ""}, {"erro 5014", "50xx", ""}, {"ERRO Nº 5014", "50xx", ""}, {"mensagem 5053", "50xx", ""},
		{"cód. erro: 5014", "50xx", ""}, {"erro cod. 5014", "50xx", ""}, {"motivo da negativa 1402", "14xx", ""}, {"Rejeição: 1308", "1308", ""}, {"crítica 5028 no lote", "50xx", ""},
		{"erro de código 5014", "50xx", ""}, {"glosa código 1308", "1308", ""}, {"TISS 1308", "1308", ""}, {"tabela 38: 1308", "1308", ""}, {"(tabela 38, 1308)", "", ""},
		{`Falha\nglosa 1308`, "1308", ""}, {"guia 123456: código 1308", "1308", ""},
		// Several.
		{"glosas 1407 e 1308", "1308", "1308"}, {"glosas: 9999, 1308", "1308", ""}, {"<codigoGlosa>9999</codigoGlosa><codigoGlosa>1308", "1308", ""},
		// No code.
		{"1308", "", ""}, {"R$ 1308", "", ""}, {"glosa de R$ 1308", "", ""}, {"R$ 1.308,00", "", ""}, {"valor da glosa: 1308", "", ""}, {"valor glosa 1308", "", ""}, {"protocolo 1308", "", ""},
		{"guia nº 1308", "", ""}, {"guia n. 1308", "", ""}, {"número da guia 1308", "", ""}, {"lote 1308", "", ""}, {"lote: 1308", "", ""}, {"prestador 1308", "", ""}, {"código do prestador 1308", "", ""},
		{"prestador código 1308", "", ""}, {"codigoPrestador: 1308", "", ""}, {"<numeroGuia>1308</numeroGuia>", "", ""}, {"<codigoProcedimento>1308", "", ""},
		{"13/08/2025", "", ""}, {"2025-01-12", "", ""}, {"em 12/01/2025 1308", "", ""}, {"ano 2025", "", ""}, {"versão 2025", "", ""}, {"erro em 2025", "", ""}, {"erro, 2025", "", ""}, {"erro. 5014 guias", "", ""},
		{"Envio.java:1308", "", ""}, {"linha 1308", "", ""}, {"erro na linha 5014", "", ""}, {"linha do erro: 5014", "", ""}, {"glosa 13080", "", ""}, {"glosa 1308.5", "", ""}, {"glosa 1.308", "", ""},
		{"glosa 9999", "", ""}, {"tabela 22: 1308", "", ""}, {"38: 1308", "", ""}, {"n. 1308", "", ""}, {"nr 1308", "", ""}, {"glosado 1308", "", ""}, {"</motivoGlosa>1308", "", ""},
		{"<codigoGlosa>9999</codigoGlosa><quantidade>1308", "", ""}, {"glosa 9999 lote 1308", "", ""}, {"glosa; 1308", "", ""}, {"a glosa / 1308", "", ""}, {"total de erros: 5014", "", ""},
		{"Ocorrência 1308/2025 aberta", "", ""}, {"glosa 1308/2025", "", ""}, {"glosas 9999/1308", "", ""}, {"erro 5014 deadlock", "", ""}, {"mensagem 1308 da fila", "", ""}, {"Erro 1402 ao conectar", "", ""},
		{"Erro 5001 - Mensagem fora do padrão", "50xx", ""}, {"erro 5014, corrija", "50xx", ""}, {"código do erro 5014 no lote", "50xx", ""}, {"glosa 1402 no item", "14xx", ""},
		{"porta 1308 <erro", "", ""}, {"<b>1308</b>", "", ""}, {"e 1308", "", ""},
	})
}

// TestTISSFaults: the name as a word of its own, however it is marked up.
func TestTISSFaults(t *testing.T) {
	c := decisiontest.Rules(byFault("login", "LoginInvalido"), byFault("schema", "SchemaInvalido"))
	checkExamples(t, c, []example{
		{"LoginInvalido", "login", "LoginInvalido"}, {"<tissFault>LoginInvalido</tissFault>", "login", "LoginInvalido"}, {"<ns2:LoginInvalido/>", "login", ""},
		{"&lt;tissFault&gt;SchemaInvalido&lt;", "schema", "SchemaInvalido"}, {`\u003cx\u003eSchemaInvalido`, "schema", ""}, {"LOGININVALIDO", "login", ""}, {"LoginInválido", "login", "LoginInválido"},
		{"faultstring=SchemaInvalido, x", "schema", ""}, {"tissFault.LoginInvalido", "login", ""},
		{"Login invalido", "", ""}, {"LoginInvalidoException", "", ""}, {"meuLoginInvalido", "", ""}, {"LoginInvalid", "", ""}, {"", "", ""},
	})
}

// TestOneNumberManyRules: a number may be a code, a status and a denial; the first rule whose sense it has wins.
func TestOneNumberManyRules(t *testing.T) {
	status := byStatus("status", "503")
	status.Class = decision.Permanent
	code := decisiontest.Transient("503")
	c := decisiontest.Rules(code, status, byStatus("later", "503", "504"), decisiontest.Transient("1308"), byTISSCode("denial", "1308"))
	checkExamples(t, c, []example{
		{"HTTP 503", "status", "503"}, {"guia 503", "503", "503"}, {"guia 503, HTTP 503", "status", "503"}, {"HTTP 504", "later", "504"}, {"guia 504", "", ""},
		{"1308", "1308", "1308"}, {"glosa 1308", "denial", "1308"}, {"1308 e glosa 1308", "denial", "1308"},
	})
	again := decisiontest.Rules(code, code)
	if m := again.Classify("503", 0); m.Name != "503" {
		t.Errorf("a code listed twice matches as %q", m.Name)
	}
}
