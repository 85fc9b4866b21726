package decisiontest

import (
	"fmt"
	"strings"

	"retry-worker/internal/classify"
	"retry-worker/internal/decision"
)

// words of rules that no message of this package is matched by.
var words = strings.Fields(`abono acordo aliquota ambulatorio anestesia auditoria autorizador beneficiario carencia carteira cirurgia
	cobertura competencia consulta contrato convenio cooperado credenciado cronograma demonstrativo desconto diaria dotacao duplicidade
	elegibilidade empenho enfermaria estorno exame executante fatura franquia gabarito gasometria glosador honorario implante internacao
	laudo liminar logradouro lote material matricula medicamento mensalidade modalidade negociacao nutricao odontologia oncologia ortese
	pacote parecer pericia plantao pontuacao prestador prontuario protese quimioterapia reajuste recurso regulador repasse requisitante
	sadt solicitante sumario tabela taxa terapia titular transplante triagem unimarca urgencia vacina validade vigencia visita`)

// Many is that many rules of every kind, as different from each other as a catalogue's are. None matches one of
// Messages.
func Many(n int) []classify.Rule {
	rules := make([]classify.Rule, n)
	for i := range rules {
		rules[i] = numbered(i)
	}
	return rules
}

func numbered(i int) classify.Rule {
	word := func(step int) string { return words[(i*step+i/len(words))%len(words)] }
	r := classify.Rule{
		Name: fmt.Sprintf("rule-%d", i), Class: decision.Permanent, Reason: "INVALID_REQUEST", Team: "ti",
		Codes:   []string{strings.ToUpper(word(7) + "_" + word(11) + "_" + word(5))},
		Phrases: []string{word(13) + " " + word(3) + " sem " + word(17), word(19) + " da " + word(23) + " invalid*"},
	}
	switch i % 10 {
	case 0:
		r.Patterns = []string{word(29) + ` \d{1,8} (?:nao|ja) ` + word(31) + `\b`}
	case 1:
		r.TISSCodes = []string{fmt.Sprint(1000 + i*7%9000)}
	case 2:
		r.TISSFaults = []string{word(37) + "Recusado"}
	case 3:
		r.Statuses = []string{fmt.Sprint(400 + i%100), "5xx"}
	}
	return r
}

// Messages are 2 kB of what fails, by name; none of Many's rules knows one, so that all are tried to the end.
func Messages() map[string]string {
	return map[string]string{"stack trace": stackTrace, "Portuguese": portuguese}
}

var stackTrace = "br.com.hospital.faturamento.EnvioException: remote peer answered <SOAP-ENV:Fault> without detail\n" + strings.Repeat(
	`	at br.com.hospital.faturamento.tiss.Envio.enviarRemessa(Envio.java:1537)
	at br.com.hospital.faturamento.tiss.Fila$Trabalho.executar(Fila.java:284)
	at org.apache.cxf.jaxws.JaxWsClientProxy.invoke(JaxWsClientProxy.java:142)
	at com.sun.proxy.$Proxy118.tissLoteGuiasOperation(Unknown Source)
	at java.base/java.util.concurrent.ThreadPoolExecutor.runWorker(ThreadPoolExecutor.java:1136)
	at java.base/java.lang.Thread.run(Thread.java:840)
`, 4) + "Caused by: org.apache.cxf.binding.soap.SoapFault: remote peer answered with a document that nobody here has seen before\n" + "	... 37 more\n"

var portuguese = "Não foi possível concluir a operação: o serviço da operadora devolveu uma situação não prevista.\n" + strings.Repeat(
	`A solicitação de número 20250112-1040 não pôde ser concluída às 10h40, pois a operadora não informou a razão. `+
		`Após três verificações, o setor responsável não encontrou explicação; são necessárias informações da própria instituição. `+
		`Códigos de apoio: 15037/40101010, valor R$ 1.503,00, sessão É-9. `, 6)
