package redact_test

import (
	"strings"
	"testing"

	"retry-worker/internal/redact"
)

// kept are texts in which nothing is anybody's.
var kept = []struct{ why, text string }{
	{"nothing", ""},
	{"RN-BIL-005", "TIMEOUT - Connection timeout after 30s"},
	{"the codes of both rules", "INVALID_PATIENT_DATA INSURANCE_EXPIRED AUTHORIZATION_DENIED DUPLICATE_CLAIM INVALID_PROCEDURE_CODE TIMEOUT CONNECTION_ERROR SERVICE_UNAVAILABLE NETWORK_ERROR TEMPORARY_ERROR RATE_LIMIT SERVER_ERROR MAX_RETRIES_EXCEEDED PERMANENT_ERROR 503 504"},
	{"ANS faults", "DestinatarioInvalido RemetenteInvalido LoginInvalido VersaoInvalida HashInvalido SchemaInvalido ErroInesperadoServidor"},
	{"a TISS fault's text", "Não foi possível validar o arquivo XML. Hash informado no XML inválido!"},
	{"table 38", "5001, 5002, 5014, 5028, 5027, 1307, 1323, 1206, 1801, 2601, 5034, 5042; 1006, 1007, 1201, 1402, 1407, 1701; 1308 5053"},
	{"table 38 with texts", "1206 - CPF/CNPJ inválido; 1013 - cadastro do beneficiário com problemas; 1007 beneficiário fora da cobertura"},
	{"HTTP statuses", "HTTP 503, status=429, [502], 504 Gateway Time-out, error code: 500"},

	// claims
	{"RN-BIL-005's", "CLM-001-1234567890 CLM-001-123 CLM-ENC-001-1234567890"},
	{"a valid CPF at the end", "CLM-ENC-001-{cpf}, conta CLM-001-{cpf}: CPF inválido"},
	{"a valid CNS, card or telephone at the end", "CLM-1-{cns} CLM-1-{card} CLM-1-5511912345678 CLM-11-91234-5678"},
	{"in JSON, quoted, with other signs", `{"claimId":"CLM-001-{cpf}"} 'CLM-001-{cpf}' claim_CLM-001-{cpf} CLM-HSP.SUL-001-{cpf} CLM-A/B-{cpf} clm-x_1-{cpf}`},
	{"labelled as a person's all the same", "CPF do beneficiário na conta CLM-001-{cpf}"},

	// protocols
	{"labels", "protocolo {prot}, protocol {prot}, número do protocolo {prot}, guia {prot}, lote {prot}, NSU {prot}"},
	{"signs", "protocolo: {prot} protocolo={prot} protocolo nº {prot} PROTOCOLO Nº: {prot} protocolo #{prot} protocolo ({prot}) prot. {prot} NSU{prot}"},
	{"words between", "Protocolo já utilizado: {prot}; guia de consulta {prot}; lote de guias TISS nº {prot}; guia não encontrada: {prot}; guia já apresentada {prot}"},
	{"JSON and XML", `"numeroProtocolo":"{prot}" "protocolo":{"numero":"{prot}"} \"nsu\":\"{prot}\" <ans:numeroGuiaPrestador>{prot}</ans:numeroGuiaPrestador> <ans:numeroLote>{prot}</ans:numeroLote> &lt;protocolo&gt;{prot}&lt;/protocolo&gt;`},
	{"XML and JSON over lines", "<ans:numeroLote>\n\t{prot}\n</ans:numeroLote> \"guia\": {\n  \"numero\": \"{prot}\"\n}"},
	{"other numbers' forms", "protocolo {cns}, guia {card}, lote 5511912345678, NSU 11912345678, guia 1234-5678, protocolo 11-91234-5678, lote {badcns}"},
	{"groups", "protocolo 2025/{prot}, protocolo 2025.{prot}-1, protocolo PRT-2025-{prot}, guia ABC{prot}, guia 123_{prot}"},
	{"longer than a number", "guia 12345678901234567890123456789012345, protocolo " + strings.Repeat("1-", 40) + "1"},
	{"lists", "guias {prot}, {cpf} e {cns}; lotes {prot}/{cpf2}"},
	{"behind a person's label", "CPF inválido na guia {prot}; paciente da guia {prot}"},
	{"digits of another script behind", "protocolo 12\u200b３, CLM-1-2\u200b3, 2025-01-12３"},
	{"other scripts", "protocolo １２３４５６７８９０９"},
	{"an engine's key", "Expected to complete job with key '{key}', but no such job was found; processInstanceKey={key}"},
	{"an instant in milliseconds", `"timestamp":` + luhnOf("173667840012")},

	// amounts, dates, instants
	{"amounts", "R$ 1.504,00; R$ 12.345.678,90; R$123.456.789,01; BRL {cpf}; US$ {card}; valor 1504.00; 123.456.789,01; 123,456,789.01"},
	{"dates", "12/01/2025, 2025-01-12, 12-01-2025, 12.01.2025, 01/2025, competência 202501, 20250112"},
	{"times", "10:40, 10:40:00, 10:40:41.912345678, 2025-01-12 10:40:41,912, 10:40:00-0300"},
	{"RFC 3339", "2025-01-12T10:40:00Z 2025-01-12T10:40:41.912345678Z 2025-01-12T10:40:00.5-03:00 2025-01-12t10:40:00+00:00"},
	{"compact", luhnInstant + " 20250112104000 20250112T104000Z 20250112104000123"},
	{"behind a person's label", "CPF inválido em 12/01/2025 10:40; beneficiário suspenso desde 12/01/2025; CPF 2025-01-12T10:40:00Z"},
	{"no birth's", "data 12/03/1980; emissão 1980-03-12; validade 12/03/2030"},

	// technical
	{"UUIDs", "123e4567-e89b-12d3-a456-426614174000 123E4567-E89B-12D3-A456-551191234567 00000000-0000-0000-0000-{cpf}1 id=12345678-1234-1234-1234-551191234567, paciente 12345678-1234-1234-1234-123456789012"},
	{"UUIDs of digits like cards", "12345678-" + cut(luhnOf("400012345678901"), []int{4, 4, 4, 4}, "-") + "12345678"},
	{"a number before a UUID, an address or a date", "503 " + cpfOf("503123456")[3:] + "-0000-0000-0000-000000000000, 503 100.100.10.100, " + beforeDate + " 10:40"},
	{"hashes", "d41d8cd98f00b204e9800998ecf8427e da39a3ee5e6b4b0d3255bfef95601890afd80709 e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
	{"hashes with somebody's digits", "abcde{cpf}abcde{cpf} 4bf92f{cpf}4bf92f3577b34da 0af7651916cd43dd84{cpf}000a"[:49]},
	{"addresses and ports", "192.168.100.10:8080 10.0.0.1 111.222.133.44 dial tcp 10.96.0.10:443: connect: connection refused [::1]:9600 2001:db8::8a2e:370:7334"},
	{"stack traces", "at br.com.hospital.Envio.enviar(Envio.java:15037)\n\tat java.base/java.lang.Thread.run(Thread.java:840)\nmain.go:123 +0x1d4 Object@6d06d69c goroutine 12345678 [running]"},
	{"URLs", "https://portal.operadora.com.br:8443/tiss/v4_01/{cpf}/{cns}/lote.xml http://10.0.0.1/{card}?x=1 s3://b/{cpf}"},
	{"URLs with an at sign", "https://medium.com/@ana https://cdn.com/npm/pkg@1.2.3/a.js"},
	{"versions", "retry-worker/1.2.3 Go/1.26.8 Chrome/120.0.6099.109 Mozilla/5.0 grpc-go/1.85.0"},
	{"tables of other things", "guia;nome_procedimento;valor\n11987654321;Consulta Eletiva;10\nnome;valor\n\noriginal error   paciente desconhecida\nretry policy   lab-results\n\nDivergentes: nome, carteira\nUnimed Campinas, lote 88213"},
	{"SQL of other things", "INSERT INTO T (NR_GUIA, NM_PROCEDIMENTO) VALUES (11987654321, 'Consulta Eletiva'); UPDATE paciente SET x = 1; SELECT nome, cpf FROM paciente (actual: 74, maximum: 70)"},
	{"keys of other things", "Duplicate entry '88213-2025' for key 'guia.uk_guia_ano'; entry '11987654321' for key 'lote.uk_numero'; Duplicate entry 'Consulta Eletiva' for key 'tuss.uk_nome'"},
	{"PHP's other things", "[portal] => Unimed Campinas [guia] => 11987654321; [\"status\"]=>\n string(13) \"Guia Recusada\""},
	{"next lines that are no names", "Paciente\n  não encontrado\nFalha no titular\n  Campo Obrigatório; Exception: paciente\n\tat br.com.Envio(Envio.java:1)"},
	{"participles behind other names", `nome do arquivo informado "Lote Tiss", nome do campo inválido "Data Base"`},
	{"titles of staff", "Auditor Unimed recusou; analista de Faturamento Pleno; enfermeira chefe; atendente: falta carimbo; Operadora Santa Clara"},
	{"a comma between capitals", "ERRO: UNIMED, VITORIA | guia 1; GLOSADO: TIMEOUT, RETRY | guia 5"},
	{"small letters of messages", "o paciente internado ontem e ela; paciente sem guia e que"},
	{"certificates, processes", "CN=portal.unimed.com.br,O=Unimed; CN=DigiCert Global Root CA,O=DigiCert; uid=1000(app)"},
	{"families of other things", `{"address":"::1","family":"IPv6","given":[]} font-family: Arial`},
	{"counts", "offset 11987654321, sequence=11987654321, sequência nº 11987654321, lote de envio 11987654321, https://h/x?numero=11987654321, error code 49 - 80090308: LdapErr"},
	{"a column's lengths", `column "HOSP"."PACIENTE"."NM_PACIENTE" (actual: 74, maximum: 70); relation "paciente" violates not-null`},
	{"at signs", "@everyone, a@b, com.foo.Bar@1a2b3c, @types/node, sdk@8.5.0, a@b.c"},
	{"numbers", "0.123456789 1234567 1e10 -12 12345678901234567890123 99.99% 1/2 3x4 30 s, 5 de 10"},
	{"ANS registry", "registro ANS 123456, operadora 123456, beneficiário da operadora 123456"},
	{"a company", "CNPJ {cnpj.}, {cnpj.}, {cnpj}, CNPJ: 12345678000100, cpfCnpj={cnpj}, CPF/CNPJ: {cnpj}, CNPJ/CPF {cnpj}, 12345678/0001-95, 12.345.678.0001-95"},
	{"eleven digits of something else", "contrato {bad}, sequência 00000000001"},
	{"eleven digits far from a label", "CPF um dois tres quatro cinco seis sete oito nove {bad}"},
	{"zeros", "0000000000000 0000000000000000"},
	{"a company's that would be a card's too", luhnCNPJ},
	{"long numbers of something else", "{badcns} {badcard} 12345678901234"},
	{"short labelled numbers", "CPF 1206, telefone 192, carteira 503, paciente 42"},

	// beside the third set's kinds
	{"commas", "PACIENTE [NAME], CARTEIRA VENCIDA; BENEFICIÁRIO: [NAME], UNIMED CAMPINAS"},
	{"HL7's other segments", "MSH|^~|HIS|HOSP|||20250112||ADT^A01; OBX|1|NM|GLU^Glucose^L||98|mg; PV1|1|I|UTI^101^A||"},
	{"HTML of other things", "<td>Guia</td><td>{prot}</td> <td>Paciente</td><td>não encontrado</td> <td>Titular</td><td>Sim</td> <th>Paciente</th><th>Convênio</th>"},
	{"departments' signatures", "Atenciosamente,\nEquipe de Faturamento; Att., Unimed Campinas; Obrigado,\nHospital Santa Maria; Obrigada. Aguardo retorno; Grato, Aguardo Retorno"},
	{"whom else to call", "ligar para a Central; falar com o Financeiro; ligar para o Hospital Santa Maria; ligar para a Santa Casa; resp. HTTP 503; resp. técnico"},
	{"SAML's other attributes", `<saml:Attribute Name="role"><saml:AttributeValue>faturista</saml:AttributeValue>`},
	{"streets in messages", "Av. Brasil fechada (ver portal); Rua sem saída (endereço ausente)"},
	{"other titles", "título da guia 1043 8872; zona eleitoral"},
	{"patterns of other fields", "Value '12AB34' is not facet-valid with respect to pattern '[!-~]{20}' of element 'numeroGuia'; Value '40301630' of element 'codigoProcedimento'"},
	{"Python's other dates", "{'data': datetime.date(1966, 4, 19)}"},

	// beside the fourth set's kinds
	{"columns of other things", "column 'DS_STATUS'. Truncated value: 'Consulta Eletiva'; WHERE nome_procedimento LIKE '%CONSULTA ELETIVA%' AND nome LIKE :1"},
	{"binds and keys of other things", "Guia inexistente [:1='Consulta Eletiva', :2='20250918' (DT_ENVIO)]; constraint 'UQ_Guia'. The duplicate key value is (30715016, Consulta Eletiva)."},
	{"foreign keys", "after `fk_guia_paciente`; CONSTRAINT `fk_guia_paciente` FOREIGN KEY (`paciente_id`) REFERENCES `paciente` (`id`)"},
	{"PHP's other values, serialized", `a:2:{s:6:"portal";s:15:"Unimed Campinas";s:4:"guia";s:11:"11987654321";}`},
	{"lines of labels", "NOME DO PACIENTE\nDATA DE NASCIMENTO\nMÉDICO\nTUSS\nTitular\nPlano Empresarial\nPACIENTE\nNAO ENCONTRADO"},
	{"lines of other labels", "Nome do procedimento\nConsulta Eletiva\nFalha no titular\nCampo Obrigatório\npaciente\nTimeout na Operadora"},
	{"leaders to messages", "PACIENTE ........ NAO ENCONTRADO; paciente... Erro ao enviar"},
	{"a header and a row of other things", `"guia;lote;tuss" => "120045;11987654;30715016"`},
	{"greetings of nobody", "Olá, equipe. Olá Unimed, segue guia; aqui é a Unimed; aqui é o faturamento; Prezados Senhores, segue; Olá Tudo Bem; Prezado Cliente"},
	{"nobody's kin", "minha mãe, que está internada; destinatário inválido; Destinatário Hospital Santa Maria"},
	{"from where to where", "De: 12/03 a 15/03; From: tiss.t_guia; De: Aguardando Envio\nPara: Recusada Operadora; De: Faturamento Hospital <[E-MAIL]>"},
	{"adjectives of nothing", "carteirinha nova é obrigatória a partir de 12/03/2025; passport.js error 448120"},
	{"folders of nobody", `C:\Users\Public\x C:\Users\svc_tiss\x /home/app/x /home/node/app /home/tiss.worker/x C:\Users\All Users\x`},
	{"escapes", `ERRO\nread.timeout 3 Users\nao.existe`},

	// beside the fifth set's kinds
	{"programs' codes behind a person", "Paciente inexistente ORA-06512: at line 3; beneficiário não encontrado SQL-1403, carteira recusada ERR-4471"},
	{"users of nobody", `Login failed for user 'NT AUTHORITY\SYSTEM', user HSJ\svc_tiss; User Id=tiss_app; User Id=postgres;`},
	{"an element's path", "Patient.birthDate: minimum required = 1, but only found 0"},
	{"a code behind a birth date's label", "data nascimento divergente codigo 1016; data de nascimento inválida, código 1016"},
	{"claims behind a person's label", "Member ID nº CLM-001-12345678, paciente nº 123e4567-e89b-12d3-a456-426614174000"},

	{"Java's other validators", `type LocalDate from String "14/07/1958" (chain: Guia["dataEnvio"]); on field 'guia': rejected value [2231099]; Patient.name.given: max allowed = 1`},
	{"bars of other things", "PACIENTE|STATUS|GUIA; paciente|não encontrado|; usuario lote.xml; host user.java.io"},
	{"numbers of authorisations", "Autorização nº 11987654321 vencida; AIH 3524112345678; chamado 11987654321; Insured: SEE ATTACHED"},

	// beside the sixth set's kinds
	{"places in data", "offset {cpf2}, partition 3; sequence={cpf}; LSN {cpf}; sequência nº {cpf2}"},
	{"SAML's values of things", `<Attribute Name="x1"><AttributeValue>Faturamento Hospital</AttributeValue><Attribute Name="role"><AttributeValue>faturista</AttributeValue>`},
	{"values of other fields without quotation marks", "Value '0039120077418822A' exceeds the length of 20 for numeroGuia; the value '7418822' is not valid for Lote."},
	{"binds of things", "[:1='Consulta Eletiva', :2={bad}]; [1]='Guia Recusada'; @p0 = 'PENDENTE', $1 = 'Unimed Campinas'; :1='LOTE_TISS'; :1='{bad}'"},
	{"validators' other fields", `Invalid value "Consulta Eletiva" for field procedimento; the value 'PENDENTE' is not valid for nome; {"field":"status","rejectedValue":"Guia Recusada"}; {"rejectedValue":"88213","field":"guia"}`},
	{"parameters of things", "binding parameter [1] as [VARCHAR] - [Consulta Eletiva]; Parameters: Guia Recusada(String), 88213(Long); dup key: { : \"LOTE-1\" }; Profissional executante\nCampo Obrigatório"},
	{"rows of things", "Failing row contains (88213, Consulta Eletiva, {bad}, null); parameters: ['Unimed Campinas', {bad}]; valor (1504,00); lote contains (2) guias"},

	// beside the seventh set's kinds
	{"salutations of nobody", "Bem-vindo ao Portal; Bem-vindo, Portal TISS; Olá, Prestador!; Welcome back, please; Hello World; Dear Provider, the claim; Dear Valued Customer; Bom dia, Equipe TI; Prezado(a) Credenciado(a), a; Logado como: FATURAMENTO; Usuário logado: Portal"},
	{"users of services", `<ans:loginPrestador>tiss_hml</ans:loginPrestador> "usuario":"hospital_santa_rita" "login":"svc-faturamento" user=zeebe_client; Access denied for user 'tiss_app'@'%'; role "tiss_ro" does not exist; Account Name: svc_tiss$ x; Account Name: SYSTEM`},
	{"who locks no record", "bloqueado pelo usuário DBAMV; pelo usuário SISTEMA; usuário BLOQUEADO; User SYSTEM has; locked by another; guia bloqueada por TIMEOUT"},
	{"files of nobody", "Paciente_nao_encontrado.xml; paciente: lote_guias_2025.pdf; relatorio_pacientes_internados.pdf; beneficiarios_unimed_campinas.csv"},
	{"lines of logs", "[10/03/2025 09:14] ERROR: timeout\n[2025-03-10 09:14:22] Main Thread: x\n10/03/2025 09:14 - Guia Recusada: 1706\n[09:14] Sistema: x\n09:14 Unimed Campinas: x"},
	{"rejected values of other fields", `{"campo":"descricaoProcedimento","valorRecebido":"Consulta Eletiva"} {"campo":"numeroGuia","valorInformado":"11987654321"} {"field":"status","receivedValue":"Guia Recusada"} <campo>numeroGuia</campo><valorRecebido>11987654321</valorRecebido>`},
	{"methods and empty elements", `Cannot invoke "Paciente.getNome()" because "paciente" is null; Element <ans:nomeBeneficiario/> line 88; <numeroCarteira /> linha 88213`},
	{"binds of other columns", ":DS_PROCEDIMENTO='CONSULTA ELETIVA', @NomeProcedimento = N'Consulta Eletiva', :NM_CONVENIO='UNIMED CAMPINAS'"},
	{"carets, accounts and signatures of nobody", "40301630^HEMOGRAMA^TUSS; UTI^101^A; GLU^Glucose; NM1*PR*2*UNIMED*~; conta 88213 travada; assinado por Unimed Campinas; carteira da operadora fora do ar; https://h/x/{bad}"},
	{"what no person did", "Criado por Rotina Automática em; negado por Porto Seguro; Autorizado por Auditoria Interna; Created by System; Assigned to Billing Team; Approved by: Automatic Rule; Dia Útil; usuário 12345678000195; Failed password for root from; Requisitante: Pronto Socorro; Cliente: Consulta Eletiva"},
	{"roles' adjectives, files' and rejected nothing", `Paciente Particular; Paciente Pediátrico; pelo usuário TISSWEB; signed by DigiCert Global; {"field":"email","rejectedValue":null}; tokenUrl=https://h/oauth/token; HSR^Hospital Santa Rita^L; usuarioId=11987`},
	{"staff, rows and folders of nobody", `Gerente Comercial ausente; Cirurgia Bariátrica; [CPF];Consulta Eletiva;1; TISS\lote.xml; HSR\app.config; paciente=nao_informado`},

	// beside the eighth set's kinds
	{"lines that begin with a place, a program or a label", "Santa Casa: fila parada\nPorto Alegre, fila parada\nVitória: fila parada\nVitória da Conquista, fila parada\nIRIS: timeout\nSenha: inválida\nPrezados, segue"},
	{"courtesy words before things", "dona da guia; seu lote; seu cadastro; sr. usuario; seu protocolo; seu ambiente; dona do cadastro trocou"},
	{"other fields and both values", "Campo 'Status' divergente. Informado: Consulta Eletiva / Cadastro operadora: Consulta Normal. Guia 1"},
	{"other values that were expected", "guia: esperado 'Consulta Eletiva', recebido 'Outra Coisa'; paciente '[NAME]', guia inválida 'Lote Tiss'"},
	{"users of services beside names", "Iniciado por: Rotina (login: admin); usuário tissapp - Unimed Campinas; usuário bloqueado - Portal Tiss"},
	{"nobody in payments", "favorecido inválido; pagador: Unimed Campinas; Cedente Unimed Campinas; sacado não encontrado; sócio ausente"},
	{"access logs of services", "10.2.0.15 - - [07/Jun/2024:09:41:10 -0300] 10.2.0.15 - svc.tiss [07/Jun/2024:09:41:10 -0300]; POST /x - 443 - 10.2.0.15 Mozilla/5.0"},
	{"an amount beside a card", `<guia carteira="[CARD]" dtAtend="2024-05-17" valor="450.00"/>`},

	{"colleagues' words before things", "falei com a central; pede pra operadora mandar; passei pro financeiro ver; segundo turno; obrigada pessoal; valeu, galera; boa tarde grupo; encaminhado para análise; atendente informou; aberto por Portal; doutor não atendeu; @everyone @Portal"},
	{"nothing told in passing", "me liga no ramal 2231; ligar para protocolo 2025-1234; caiu dia 12/03/1980; o user é obrigatório; usuário da rede caiu"},
	{"kin and colleagues without a name", "a mãe ligou; filho de titular; responsavel com cpf errado; quem abriu foi a central; ass: digital\nRosa (timeout)\nVitória - faturamento\nConceição do hospital\nSanta Rita - faturamento"},
	{"users by a given name in our own words", "it is reprocessing since 10:00:00Z by ana; vera has the role ana; tentativa extra, por marta.lima , hoje"},

	// beside the ninth set's kinds
	{"lines of labels and states below a name's label", "Nome do beneficiário\nNúmero da Guia\nNome do beneficiário\nData de Nascimento\nNome\nTipo de Plano\nPaciente\nNão Encontrado\nPaciente\nDado Inválido\nBeneficiário\nAtendimento Eletivo\nBeneficiário\nRegime Domiciliar\nNome do titular\nInformações Adicionais"},
	{"participles without leaders", "Nome da mãe inválido: caractere não permitido; nome informado: campo obrigatório; Paciente não encontrado: Unimed Campinas; Nome inválido: Caractere Especial; Beneficiário não cadastrado: Tente Novamente; Nome inválido: Utilize Apenas Letras"},
	{"servers and kinds of workers", `servidor Oracle Database; servidor: Microsoft IIS; Nome do servidor: SRVPROD; {"nomeServidor":"SRVPROD"}; servidor WebLogic Server parou; contribuinte Individual Autônomo; Empregado Doméstico; Funcionário Público Federal; aposentado por Invalidez Permanente; user.service.name=x`},
	{"no person behind a number", "Carteira [CARD] de Santa Casa; guia 12 de Porto Alegre; lote 3 de MAIO; carteira [CARD] da Unimed Campinas; [CARD] do Plano Ouro; CPF [CPF] DO BENEFICIARIO INVALIDO; [CARD] DO MES ANTERIOR; guia 12 de São José; CPF [CPF] da Receita Federal; [CPF] - Cadastro Inexistente; [CARD] - Bloqueio Judicial; [CARD] - Porto Alegre; [ADDRESS] - Belo Horizonte; [CARD], Unimed Campinas; [CPF] (Cadastro Inexistente); [CARD] (Visa Platinum); [CARD], Carteira Bloqueada; [CPF]. Favor Verificar; user [tiss.worker]"},
	{"numbers of documents for a purpose", "Protocolo de recebimento: 898001234567891; PROTOCOLO DE RECEBIMENTO: 898001234567891; lote de retorno: 898001234567891; recibo de entrega: 898001234567891; comprovante 898001234567891; Guia de consulta: 898001234567891"},
	{"members behind a personal one, of something else", `{"guia":"1","informado":"Consulta Eletiva"} {"nome":"[NAME]","valor":"150,00"} {"nome":"[NAME]","expected":"string","received":"number"} {"carteira":"[CARD]","valor":"Consulta Eletiva"}`},
	{"dumps and binds of things", "[usuario] => sistema; map[user:tiss_app]; 1=>'CONSULTA ELETIVA' 2=>'0012277880043' (NR_GUIA); columns (ID, NR) VALUES (1, '96010140')"},

	// words
	{"roles without a name", "Paciente não encontrado. PACIENTE NAO CADASTRADO. Beneficiário inválido. beneficiário sem cobertura. Titular com plano suspenso. Paciente, guia e lote."},
	{"English genitive", "the patient's chart is missing, patients' charts"},
	{"a wrong time", "nextRetryTime is +12025-01-12T00:00:00Z"},
	{"roles in small letters", "paciente internado em estado grave"},
	{"a role's cover", "beneficiário sem cobertura"},
	{"a house that is named for somebody", "Hospital Dr. Mário Gatti; Maternidade Dona Francisca, ala B; Assistência Médica Internacional"},
	{"everybody's telephone, a department", "telefone da central 08001234567; responsável: setor de faturamento"},
	{"names of houses", "Hospital Santa Maria; Unimed São Paulo"},
	{"labels in messages", "O campo 'nome' é obrigatório; nome: campo obrigatório; nomeBeneficiario: must not be blank; \"nome\":null; \"nome\":\"\"; cpf inválido; e-mail ausente; telefone: undefined"},
	{"names of things", "nome do arquivo: lote.xml; nomeArquivo=Lote; nome_fantasia: Hospital; file name: x; host name Portal; Name or service not known; name=tiss-submission; nome da operadora: Unimed; paciente: foo=bar"},
	{"JavaScript's errors", `{"name":"AxiosError","message":"Request failed with status code 503","code":"ERR_BAD_RESPONSE"} paciente: AxiosError`},
	{"schema messages", "cvc-complex-type.2.4.a: Invalid content was found starting with element 'ans:nomeBeneficiario'. One of '{\"http://www.ans.gov.br/padroes/tiss/schemas\":cpf}' is expected."},
	{"quoted values of other fields", "The value '123456789012' of element 'ans:numeroGuiaPrestador' is not valid. value 'abc' of type 'xs:integer', value '' of element 'nome', value 'null' of element 'nome', value 'Maria"},
	{"quoted over lines", "value 'Maria\nda Silva' of element 'nome'; endereco='Rua\nX'"},
	{"a label of another kind, or of the next number, behind", "contrato {bad}, carteira; contrato {bad} - guia; contrato {bad} CPF [CPF]"},
	{"closing tags", "<nome></nome>TIMEOUT <ans:nome_paciente/></ans:nome_paciente> Falha"},
	{"dangling signs", `% %4 %zz & &amp &x; \ \u12 \x " ' < </ [ + ( @ : :// $ CLM CLM- \\\\ [CPF [NOPE] {`},
	{"e-mail signs alone", "a @ b, @, a@, @b.com, .@b.com"},
	{"marks", "[CPF] [CNS] [E-MAIL] [PHONE] [CARD] [NAME] [BIRTHDATE] [ID] [ADDRESS] [USER]"},
	{"no Latin letters", "паciente 日本語 العربية ñandú × ÷ ß"},
	{"TRD-0003", "404 Not Found: numero nao existe; 429 Too Many Requests; Evolution API fora do ar"},
}

func TestTheRestIsKept(t *testing.T) {
	for _, c := range kept {
		text := fill(c.text)
		if got := redact.Text(text); got != text {
			t.Errorf("%s:\n text %q\n got  %q", c.why, text, got)
		}
	}
}
