package redact

import (
	"slices"
	"strings"
)

// class says what a word does to the text behind it.
type class uint8

const (
	unknown   class = iota // may be a name
	article                // may stand within a name, and connects
	label                  // a number, date or address of its kind follows
	person                 // a person's name or number follows
	named                  // a name follows
	vague                  // a name follows, if it has two words
	login                  // a user's name follows
	qualifier              // named: "nome completo"; connects
	filler                 // of an error text; it may stand between a label and its number
	health                 // the same, and makes "cartão" a CNS
	field                  // the same: "campo 'x'": a validator quotes where it found it
	element                // such a field, that does not connect
	quoting                // "value 'x'": a validator quotes what it found
	paper                  // may stand between a document's label and its number
	street                 // begins an address
	stop                   // no part of a name
	keep                   // the next number is nobody's: protocol, guide, batch
	keepAll                // the numbers of the list that follows
	engineKey              // the next number is an engine's key or an instant, if it is as long as one
	registry               // the next number is the ANS's, if it has six digits
	company                // the next number may be a company's
	currency               // the next number is an amount
	claim                  // begins a claim's id
	secretive              // a password or key follows
	header                 // one follows a sign that assigns it
	cookie                 // the same, in pairs
	token_                 // one follows, if it looks like one
	scheme                 // credentials follow: Bearer, Basic
	digest                 // the same, in pairs
	logon                  // user and password follow: scott/tiger@
	keyOwner               // makes "key" a secret's
	vendor                 // begins a vendor's token: ghp_…
)

// classes is a set of them.
type classes uint64

func is(c class, set classes) bool { return set>>c&1 == 1 }

func setOf(all ...class) (set classes) {
	for _, c := range all {
		set |= 1 << c
	}
	return set
}

var (
	connecting = setOf(article, qualifier, filler, health, field)
	keeping    = setOf(keep, keepAll, engineKey, registry)
	nameable   = setOf(unknown, article, vendor, street)
	fields     = setOf(field, element)
	// openers mean something where nothing came before.
	openers = setOf(label, person, named, vague, keep, keepAll, engineKey, registry, company, currency, claim, secretive,
		header, cookie, token_, scheme, digest, vendor, logon)
	secrets = setOf(secretive, header, cookie, token_)
	// messages are the words of error texts.
	messages = setOf(qualifier, filler, health, field, element, quoting, paper, stop) | connecting
)

// entry is what the lexicon knows of a word.
type entry struct {
	class class
	kind  kind
}

// lexicon holds words without case and accents, singular and plural; "*" stands for -o, -a, -os, -as. The first line
// that has a word rules.
var lexicon = []struct {
	entry
	words string
}{
	{entry{secretive, none}, `senha senhas password passwords passwd passphrase passcode pwd psw secret secrets segredo clientsecret
		apikey apikeys xapikey apisecret secretkey privatekey accesskey authtoken accesstoken refreshtoken idtoken sessiontoken
		jsessionid phpsessid sessionid csrftoken xsrftoken samlresponse samlrequest samlassertion mysqlpwd pgpassword palavrachave`},
	{entry{header, none}, `authorization credential credentials credencial credenciais`},
	{entry{cookie, none}, `cookie cookies setcookie`},
	{entry{token_, none},
		`token tokens jwt chave chaves sessao session assinatura signature sig pass auth sid csrf pin otp cvv`},
	{entry{scheme, none}, `bearer basic negotiate ntlm`},
	{entry{digest, none}, `digest`},
	{entry{logon, none}, `thin sqlplus`},
	{entry{keyOwner, none}, `api access private subscription signing encryption functions account shared master`},
	{entry{vendor, none}, `ghp gho ghs ghu glpat xoxb xoxp xoxa xoxs sk rk hvs rwt whsec`},

	{entry{label, cpf}, `cpf cpfs cic numerocpf nrcpf numcpf cpfbeneficiario cpfpaciente cpftitular cpfresponsavel cpfcontratado`},
	{entry{label, taxpayer}, `cpfcnpj cnpjcpf documento documentos`},
	{entry{label, cns}, `cns numerocns cnsbeneficiario cnspaciente nrcns cartaosus cartaonacionalsaude`},
	{entry{label, card}, `carteirinha carteirinhas carteira carteiras numerocarteira numerocarteirinha nrcarteira cartao cartoes
		card cards cardnumber pan numerocartao apolice`},
	{entry{label, phone}, `telefone telefones tel fone fones celular celulares cel cell phone phones phonenumber telephone mobile
		whatsapp zap fax numerotelefone telefonecontato telefonepaciente telefonebeneficiario msisdn jid`},
	{entry{label, mail}, `email emails mail mails emailbeneficiario emailpaciente mailto`},
	{entry{label, record}, `rg passaporte prontuario prontuarios pis pasep nis nit cnh matricula matriculas eleitor ctps corrente poupanca
		bancaria reservista rne`},
	{entry{label, birth}, `nascimento nasc datanascimento dtnascimento dtnasc datanasc nascid* birth birthdate birthday dob dateofbirth dn`},
	{entry{label, address}, `endereco enderecos logradouro bairro cep enderecopaciente enderecobeneficiario residencia residente
		reside domicilio mora`},

	{entry{person, id}, `paciente pacientes patient patients beneficiari* beneficiary beneficiaries titular titulares segurad* associad*
		dependente dependentes insured subscriber policyholder usuariobeneficiario idpaciente idbeneficiario
		codigobeneficiario codigopaciente patientid medic* cardholder member members`},
	{entry{named, name}, `nome nomes nomebeneficiario nomepaciente nometitular nomesegurado nomedependente nomecompleto nomesocial
		nomemae nomepai nomeresponsavel nomeprofissional sobrenome prenome patientname fullname firstname lastname surname
		sr sra srta srs sras dr dra drs`},
	{entry{vague, name}, `name names`},
	{entry{login, none}, `usuari* user username login`},
	{entry{qualifier, name}, `mae pai mother father responsavel acompanhante conjuge filh* espos* marido genitor genitora`},
	{entry{qualifier, none}, `complet* social full first last given family push profissional professional cliente customer contato
		contact`},

	{entry{keep, none}, `protocolo protocol numeroprotocolo nrprotocolo guia guide numeroguia numeroguiaprestador
		numeroguiaoperadora lote batch numerolote nsu prot`},
	{entry{keepAll, none}, `protocolos protocols guias lotes nsus`},
	{entry{registry, none}, `registro registroans ans`},
	{entry{engineKey, none}, `key jobkey job instance processinstancekey elementinstancekey instancekey instancia
		timestamp epoch millis`},
	{entry{company, none}, `cnpj`},
	{entry{currency, none}, `brl usd eur`},
	{entry{health, none}, `nacional sus saude`},
	{entry{claim, none}, `clm`},

	{entry{article, none}, `de da do das dos e di del della la van von y`},
	{entry{filler, none}, `a o as os um uma n no na nos nas dele dela deles delas nr num numero numeros number id ids cod codigo codigos code identificador
		nao ja sem invalid* incorret* inexistente inexistentes ausente ausentes vazi* valido valida divergente divergentes diferente diferentes duplicad*
		informad* encontrad* localizad* cadastrad* apresentad* utilizad* usad* existente recebid* enviad* retornad*
		gerad* cadastro rejeitad* recusad* aceit* process* pendente formato digito digitos date em is was are be has the of not
		found invalid incorrect missing wrong already used unknown duplicate given received sent rejected accepted`},
	{entry{field, none}, `campo field`},
	{entry{element, none}, `element elemento attribute atributo type tipo tag`},
	{entry{quoting, none}, `valor value`},
	{entry{paper, none}, `tiss xml sp sadt consulta internacao honorario honorarios resumo anexo pagamento cobranca
		faturamento prestador operadora principal solicitacao autorizacao origem destino transacao`},
	{entry{street, none}, `rua r avenida av travessa alameda praca rodovia estrada largo`},
	{entry{stop, none}, `com para por pela pelo pelas pelos ao aos que se ou mas mais menos quando onde como qual quais este esta
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

const longestWord = 32 // bytes of one in the lexicon, at most

var dictionary = func() map[string]entry {
	words := make(map[string]entry)
	for _, line := range slices.Backward(lexicon) {
		for _, word := range strings.Fields(line.words) {
			endings := []string{""}
			stem, inflected := strings.CutSuffix(word, "*")
			if inflected {
				endings = []string{"o", "a", "os", "as"}
			}
			for _, ending := range endings {
				words[stem+ending] = line.entry
			}
		}
	}
	return words
}()

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

// placeholders stand where a datum was.
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
	record:   {3, 20, 0, 0},
	birth:    {6, 8, 0, 0},
	address:  {8, 8, 0, 0}, // CEP
}

// givenNames are the usual ones, by which a name in small letters is known.
var givenNames = func() map[string]bool {
	names := make(map[string]bool)
	for _, n := range strings.Fields(`adriana adriano alan alessandra alessandro alex alexandre alice aline amanda ana anderson andre andrea andreia angela
	antonia antonio aparecida arthur augusto barbara beatriz benedito bernardo bianca breno bruna bruno caio camila carla carlos
	carolina caroline catarina cecilia celia celso cesar cicero clara claudia claudio clarice conceicao cristiana cristiane cristina
	daniel daniela danilo davi david debora denise diego diogo edson eduarda eduardo elaine elena eliana eliane elias elisa elisabete
	elza emanuel enzo erica eva evandro fabiana fabiano fabio fatima felipe fernanda fernando flavia flavio francisca francisco
	gabriel gabriela geraldo gilberto giovana giovanna gisele guilherme gustavo heitor helena heloisa henrique hugo iara igor ines
	ingrid iris isabel isabela isadora ivan ivone jair jane janaina jaqueline jefferson jessica joana joao joaquim joel john jonas
	jorge jose josefa joyce juliana juliano julia julio karina katia laura leandro leonardo leticia lia lidia livia lorena lourdes
	luan luana lucas lucia luciana luciano lucio luis luisa luiz luiza luzia manoel manuel manuela marcela marcelo marcia marcio
	marcos margarida maria mariana marina mario marisa marlene marta mateus matheus mauricio mauro mary michele miguel milena
	milton monica murilo natalia neide nelson nicolas nicole norma olga olivia osvaldo otavio patricia paula paulo pedro priscila
	rafael rafaela raimunda raimundo raquel raul regina reginaldo renan renata renato ricardo rita roberta roberto robson rodrigo
	rogerio ronaldo rosa rosana rosangela rosane roseli rubens ruth sabrina samuel sandra sara sebastiana sebastiao sergio silvana
	silvia silvio simone solange sofia sonia suely sueli tais tania tatiana teresa terezinha thais thiago tiago valdir valentina
	valeria vanessa vania vera veronica vicente victor vinicius vitor vitoria viviane wagner wallace walter wellington wesley
	william yasmin yuri zelia`) {
		names[n] = true
	}
	return names
}()

// messageEndings are those of words of messages: suspenso, recusou, ambulatorial.
const messageEndings = `ado ada ados adas ido ida idos idas cao coes mente ndo ou eu iu vel veis ar er ir ing ed ico ica
	oso osa ente ante ario aria ial ivo iva enso ensa erto erta sso ssa ual nal ral cial tal dor dora vo`
