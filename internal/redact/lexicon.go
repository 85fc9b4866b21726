package redact

import (
	"slices"
	"strings"
)

// role says what a word does to the text behind it.
type role uint32

const (
	labels    role = 1 << iota // a number, date or address of its kind follows
	persons                    // a person's name or number follows
	names                      // a name follows
	vague                      // a name follows, if it has two words
	qualifies                  // names: "nome completo"
	connects                   // may stand between a label and its number
	papers                     // the same, between a document's label and its number
	quotes                     // "value 'x'": a validator quotes what it found
	fields                     // "element 'x'": a validator quotes where it found it
	particle                   // may stand within a name
	stops                      // no part of a name
	keeps                      // the next number is nobody's: protocol, guide, batch
	keepsAll                   // the numbers of the list that follows
	keepsLong                  // the next number is an engine's key or an instant, if it is as long as one
	registry                   // the next number is the ANS's, if it has six digits
	companies                  // the next number may be a company's
	currency                   // the next number is an amount
	health                     // makes "cartão" a CNS
	claim                      // begins a claim's id
	brief                      // an abbreviation: a period behind it ends no sentence
	secrets                    // a password or key follows
	tokens                     // one follows, if it looks like one
	needsSign                  // secrets: but only behind a sign that assigns it
	cookies                    // secrets: in pairs
	schemes                    // credentials follow: Bearer, Basic
	pairs                      // schemes: whose credentials are pairs
	logons                     // user and password follow: scott/tiger@
	keyOwners                  // makes "key" a secret's
	vendors                    // begins a vendor's token: ghp_…
)

// entry is what the lexicon knows of a word.
type entry struct {
	role role
	kind kind
}

const (
	message = stops | connects // of an error text; it may stand between a label and its number
	article = particle | connects
	// begins is what means something where nothing came before.
	begins = labels | persons | names | vague | keeps | keepsLong | registry | companies | quotes | currency | claim |
		secrets | tokens | schemes | vendors | logons
)

// lexicon holds words without case and accents, singular and plural; "*" stands for -o, -a, -os, -as.
var lexicon = []struct {
	entry
	words string
}{
	{entry{secrets | stops, none}, `senha senhas password passwords passwd passphrase passcode pwd psw secret secrets segredo clientsecret
		apikey apikeys xapikey apisecret secretkey privatekey accesskey authtoken accesstoken refreshtoken idtoken sessiontoken
		jsessionid phpsessid sessionid csrftoken xsrftoken`},
	{entry{secrets | needsSign | stops, none}, `authorization credential credentials credencial credenciais`},
	{entry{secrets | needsSign | cookies | stops, none}, `cookie cookies setcookie`},
	{entry{tokens | stops, none},
		`token tokens jwt chave chaves sessao session assinatura signature sig pass auth sid csrf pin otp cvv`},
	{entry{schemes | stops, none}, `bearer basic negotiate ntlm`},
	{entry{schemes | pairs | stops, none}, `digest`},
	{entry{logons | stops, none}, `thin sqlplus`},
	{entry{keyOwners | stops, none},
		`api access secret private subscription signing encryption functions account shared master`},
	{entry{vendors, none}, `ghp gho ghs ghu glpat xoxb xoxp xoxa xoxs sk rk hvs rwt whsec`},
	{entry{labels, cpf},
		`cpf cpfs cic numerocpf nrcpf numcpf cpfbeneficiario cpfpaciente cpftitular cpfresponsavel cpfcontratado`},
	{entry{labels, taxpayer}, `cpfcnpj cnpjcpf documento documentos`},
	{entry{labels, cns}, `cns numerocns cnsbeneficiario cnspaciente nrcns cartaosus cartaonacionalsaude`},
	{entry{labels, card}, `carteirinha carteirinhas carteira carteiras numerocarteira numerocarteirinha nrcarteira cartao cartoes
		card cards cardnumber pan numerocartao apolice`},
	{entry{labels, phone}, `telefone telefones tel fone fones celular celulares cel cell phone phones phonenumber telephone mobile
		whatsapp zap fax numerotelefone telefonecontato telefonepaciente telefonebeneficiario msisdn jid`},
	{entry{labels, mail}, `email emails mail mails emailbeneficiario emailpaciente mailto`},
	{entry{labels, record}, `rg passaporte prontuario prontuarios pis pasep nis nit cnh matricula matriculas`},
	{entry{labels, birth},
		`nascimento nasc datanascimento dtnascimento dtnasc datanasc nascid* birth birthdate birthday dob dateofbirth dn`},
	{entry{labels, address}, `endereco enderecos logradouro bairro cep enderecopaciente enderecobeneficiario`},

	{entry{persons, id}, `paciente pacientes patient patients beneficiari* beneficiary beneficiaries titular titulares segurad* associad*
		dependente dependentes insured subscriber policyholder usuariobeneficiario idpaciente idbeneficiario
		codigobeneficiario codigopaciente patientid medic* cardholder`},
	{entry{names | stops, name}, `nome nomes nomebeneficiario nomepaciente nometitular nomesegurado nomedependente nomecompleto nomesocial
		nomemae nomepai nomeresponsavel nomeprofissional sobrenome prenome patientname fullname firstname lastname surname
		sr sra srta srs sras dr dra drs`},
	{entry{vague | stops, name}, `name names`},
	{entry{qualifies | message, none}, `complet* social full first last given family push mae pai mother father responsavel
		profissional professional cliente customer contato contact`},

	{entry{keeps | stops, none}, `protocolo protocol numeroprotocolo nrprotocolo guia guide numeroguia numeroguiaprestador
		numeroguiaoperadora lote batch numerolote nsu`},
	{entry{keeps | brief | stops, none}, `prot`},
	{entry{keeps | keepsAll | stops, none}, `protocolos protocols guias lotes nsus`},
	{entry{registry | stops, none}, `registro registroans ans`},
	{entry{keepsLong | stops, none}, `key jobkey job instance processinstancekey elementinstancekey instancekey instancia
		timestamp epoch millis`},
	{entry{companies | stops, none}, `cnpj`},
	{entry{currency | stops, none}, `brl usd eur`},
	{entry{health | message, none}, `nacional sus saude`},
	{entry{claim | stops, none}, `clm`},

	{entry{article, none}, `de da do das dos e di del della la van von y`},
	{entry{message, none}, `a o as os um uma n no na nos nas dele dela deles delas nr num numero numeros number id ids cod codigo codigos code identificador
		nao ja sem invalid* incorret* inexistente inexistentes ausente ausentes vazi* valido valida divergente divergentes diferente diferentes duplicad*
		informad* encontrad* localizad* cadastrad* apresentad* utilizad* usad* existente recebid* enviad* retornad*
		gerad* cadastro rejeitad* recusad* aceit* process* pendente formato digito digitos date em is was are be has the of not
		found invalid incorrect missing wrong already used unknown duplicate given received sent rejected accepted`},
	{entry{message | fields, none}, `campo field`},
	{entry{stops | fields, none}, `element elemento attribute atributo type tipo tag`},
	{entry{stops | quotes, none}, `valor value`},
	{entry{stops | papers, none}, `tiss xml sp sadt consulta internacao honorario honorarios resumo anexo pagamento cobranca
		faturamento prestador operadora principal solicitacao autorizacao origem destino transacao`},
	{entry{stops, none}, `com para por pela pelo pelas pelos ao aos que se ou mas mais menos quando onde como qual quais este esta
		esse essa isto seu sua seus suas foi sao estao ser ter tem possui possuem havia deve devem pode podem precisa necessari*
		obrigatori* menor maior idade sexo internad* gestante obito conta contas leito auditor auditora assistente
		requisitante credenciad* cooperad* permitid* autorizad* negad* bloquead* cancelad* suspens* inativ* ativ* expirad* vencid* excluid*
		falecid* desligad* elegivel inelegivel coberto coberta cobertura carencia fora dentro plano contrato convenio
		empresa hospital clinica laboratorio unidade fantasia razao contratad* executante solicitante procedimento tabela
		item itens material medicamento valores quantidade total erro erros falha falhas aviso alerta mensagem texto
		motivo glosa status situacao estado data hora horario periodo competencia prazo limite tempo versao arquivo
		diretorio pasta servidor servico sistema portal rede conexao banco base dados tentativa tentativas reenvio
		envio retorno resposta requisicao operacao metodo classe funcao objeto tipos variavel parametro chaves
		usuari* senha login acesso token sessao certificado assinatura hash schema esquema
		vermelho ligar tente tentar novamente favor verifique verificar contate corrigir corrija conferir confere corresponde
		pertence consta constam existe existem difere obtid* ocorreu durante apos antes depois entre sobre
		an and or in on at by to from with without for as it its this that were have had does did do cannot could can
		should must may will would only null nil none undefined empty blank required expected but got unexpected
		true false error errors exception failure failed fail timeout timed out connection connect connecting network
		service unavailable server client host hostname port socket gateway proxy request response rate limit limited
		temporary transient permanent insurance expired authorization authorized denied procedure invalidpatientdata data
		duplicated claim claims retry retries attempt attempts exceeded maximum file path url http https ftp soap rest
		json api class method function module thread process worker policy format length size range reset refused
		closed broken pipe internal bad forbidden unauthorized read write deadline cause caused stack trace warning
		info debug fatal record records registration eligibility coverage history account details information age gender
		unable while after before when where which eof tls ssl dns lookup dial tcp udp ok string
		number integer object array boolean property namespace node version system user username password`},
}

// dictionary has the lexicon's words by their hash; two words of different meaning with one hash are not to be met.
var dictionary = buildDictionary()

func buildDictionary() map[uint64]entry {
	words := make(map[uint64]entry)
	for _, line := range slices.Backward(lexicon) { // the first line that has a word rules
		for _, word := range strings.Fields(line.words) {
			stem, inflected := strings.CutSuffix(word, "*")
			if !inflected {
				words[hash(word)] = line.entry
				continue
			}
			for _, ending := range []string{"o", "a", "os", "as"} {
				words[hash(stem+ending)] = line.entry
			}
		}
	}
	return words
}

func hash(word string) uint64 {
	h := hashSeed
	for i := range len(word) {
		h = hashByte(h, word[i])
	}
	return h
}

// FNV-1a, 64 bits.
const hashSeed uint64 = 14695981039346656037

func hashByte(h uint64, c byte) uint64 { return (h ^ uint64(c)) * 1099511628211 }

// kind of a personal datum.
type kind uint8

const (
	none kind = iota
	cpf
	cns
	card
	phone
	mail
	name
	birth
	id
	address
	user
	secret
	// record is a label only, of a number that may be short: a medical record, an identity card.
	record
	// taxpayer is a label only, "CPF/CNPJ": a company's number stays, a person's goes.
	taxpayer
)

// placeholders stand where a datum was. A placeholder holds no digit, no blank and no character that ends a URL's
// path, so it is read again as what it replaced.
var placeholders = [...]string{
	cpf: "[CPF]", cns: "[CNS]", card: "[CARD]", phone: "[PHONE]", mail: "[E-MAIL]", name: "[NAME]",
	birth: "[BIRTHDATE]", id: "[ID]", address: "[ADDRESS]", user: "[USER]",
	secret: "[SECRET]",
}

// plain returns the kind whose placeholder stands for a datum that was labelled as k.
func (k kind) plain() kind {
	switch k {
	case record:
		return id
	case taxpayer:
		return cpf
	}
	return k
}

// placeholderAt returns the kind whose placeholder begins s; none where there is none.
func placeholderAt(s string) kind {
	for k := cpf; k < record; k++ {
		if strings.HasPrefix(s, placeholders[k]) {
			return k
		}
	}
	return none
}

// reach says how many digits a labelled number of a kind has: right behind its label, and a few words
// after it; none where most is 0.
type reach struct{ least, most, nearLeast, nearMost int }

var reaches = [taxpayer + 1]reach{
	cpf:      {8, 14, 11, 11}, // leading zeros lost; a digit too many
	taxpayer: {8, 13, 11, 11},
	cns:      {11, 16, 15, 15},
	card:     {6, 20, 13, 20}, // a TISS numeroCarteira has up to 20
	phone:    {7, 15, 10, 13},
	id:       {6, 20, 0, 0}, // not from afar: six digits may be an ANS registry
	record:   {3, 15, 0, 0},
	birth:    {6, 8, 0, 0},
	address:  {8, 8, 0, 0}, // CEP
}
