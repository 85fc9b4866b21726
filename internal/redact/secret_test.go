package redact_test

import (
	"strings"
	"testing"

	"retry-worker/internal/redact"
)

// Nobody's: made up for these tests.
const (
	webToken  = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJvcGVyYWRvcmEifQ.c2lnbmF0dXJlLW9mLW5vYm9keQ"
	basicAuth = "cG9ydGFsOm5pbmd1ZW0="
)

// secrets says what becomes of what (R32).
var secrets = []struct{ why, text, want string }{
	{"XML", "<ans:senhaPrestador>abc</ans:senhaPrestador><ans:loginPrestador>x</ans:loginPrestador>", "<ans:senhaPrestador>[SECRET]</ans:senhaPrestador><ans:loginPrestador>x</ans:loginPrestador>"},
	{"XML over lines, with attributes, CDATA, escaped", "<senha>\n  a b\n</senha><wsse:Password Type=\"x#PasswordText\">a&amp;b</wsse:Password><senha><![CDATA[a<b&c]]></senha> &lt;senha&gt;abc&lt;/senha&gt;",
		"<senha>\n  [SECRET]\n</senha><wsse:Password Type=\"x#PasswordText\">[SECRET]</wsse:Password><senha><![CDATA[[SECRET]]]></senha> &lt;senha&gt;[SECRET]&lt;/senha&gt;"},
	{"XML, nothing in it", "<senha></senha><senha/><token/> <ans:senhaPrestador xsi:nil=\"true\"/>", "<senha></senha><senha/><token/> <ans:senhaPrestador xsi:nil=\"true\"/>"},
	{"headers", "Authorization: Basic " + basicAuth + "\nAuthorization: Bearer abc.def\nX-Api-Key: 0a1b2c\nx-auth-token: abcdef1234", "Authorization: Basic [SECRET]\nAuthorization: Bearer [SECRET]\nX-Api-Key: [SECRET]\nx-auth-token: [SECRET]"},
	{"headers quoted", `curl -H "Authorization: Bearer abc" -H 'apikey: abc' https://h/x`, `curl -H "Authorization: Bearer [SECRET]" -H 'apikey: [SECRET]' https://h/x`},
	{"credentials alone", "recusado: Bearer abc123def456 por Basic " + basicAuth, "recusado: Bearer [SECRET] por Basic [SECRET]"},
	{"JSON", `{"client_secret":"a,b;c","grant_type":"client_credentials","access_token": "abc","chaveAcesso":"ab-1","expires_in":3600,"senha":"x y z"}`,
		`{"client_secret":"[SECRET]","grant_type":"client_credentials","access_token": "[SECRET]","chaveAcesso":"[SECRET]","expires_in":3600,"senha":"[SECRET]"}`},
	{"JSON in JSON", `{\"senha\":\"abc\",\"clientSecret\":\"abc\"}`, `{\"senha\":\"[SECRET]\",\"clientSecret\":\"[SECRET]\"}`},
	{"name and value", `{"name":"password","value":"abc"} <param name="senha" value="abc"/>`, `{"name":"password","value":"[SECRET]"} <param name="senha" value="[SECRET]"/>`},
	{"a person's user name in a form and an element", "username=ana.reis&x=1 <wsse:Username>ana.reis</wsse:Username>", "username=[USER]&x=1 <wsse:Username>[USER]</wsse:Username>"},
	{"forms, query strings", "grant_type=password&username=x&password=a%26b&client_secret=abc https://h/x?token=abc&x=1 senha%3Dabc%26x", "grant_type=password&username=x&password=[SECRET]&client_secret=[SECRET] https://h/x?token=[SECRET]&x=1 senha%3D[SECRET]%26x"},
	{"connection strings", "Server=db;User Id=sa;Password=a;b!c;Timeout=3 jdbc:postgresql://h/x?user=u&password=abc DB_PASSWORD=abc", "Server=db;User Id=sa;Password=[SECRET];Timeout=3 jdbc:postgresql://h/x?user=u&password=[SECRET] DB_PASSWORD=[SECRET]"},
	{"texts", "senha: abc, senha = abc; senha=abc. Senha do prestador: Abc123; senha 'abc' recusada", "senha: [SECRET], senha = [SECRET]; senha=[SECRET] Senha do prestador: [SECRET]; senha '[SECRET]' recusada"},
	{"without a sign", "falha com a senha Hosp@2024 no portal, password s3cr3t, senha 123456 inválida", "falha com a senha [SECRET] no portal, password [SECRET], senha [SECRET] inválida"},
	{"words between", "senha inválida: abc123; senha informada (Abc12345) não confere; token inválido: a1b2c3d4e5f6a7b8", "senha inválida: [SECRET]; senha informada ([SECRET]) não confere; token inválido: [SECRET]"},
	{"part of a URL's path", "https://h/token/F00DB4BE77Q9/send https://h/bot612345678:AAHnobody_x9Q2/getUpdates /apikey/9f8a7c6b5d4e3f2a1b/v1 /hooks/8wq1k3yzn7dq9xmo4e5rsu6tya /services/T01AB/B01CD/XnobodyS1XQ2 /webhooks/11223344/aB1cDe2FgHi3Jk /api-key/AbC123def456GhI /senha/Xpto@2024/x",
		"https://h/token/[SECRET]/send https://h/bot612345678:[SECRET]/getUpdates /apikey/[SECRET]/v1 /hooks/[SECRET] /services/[SECRET] /webhooks/[SECRET] /api-key/[SECRET] /senha/[SECRET]/x"},
	{"codes that words stand before", "código de acesso ao portal da operadora é 482913; Seu código: 482913. Use o código 4821 para entrar; your code is 771204; Su código de acceso es 553910; código enviado por e-mail: 553910; token SMS 553910 inválido; PIN do token é 98765432; 771204 is your Unimed verification code",
		"código de acesso ao portal da operadora é [SECRET]; Seu código: [SECRET]. Use o código [SECRET] para entrar; your code is [SECRET]; Su código de acceso es [SECRET]; código enviado por e-mail: [SECRET]; token SMS [SECRET] inválido; PIN do token é [SECRET]; [SECRET] is your Unimed verification code"},
	{"random behind other words", "chave de acesso da API a1b2c3d4e5f6a7b8c9d0 revogada; token de integração a1b2c3d4e5f6a7b8c9d0; $2y$10$abcdefghijklmnopqrstuu; la contraseña es Girasol77; <entry key=\"db.password\">abc</entry>",
		"chave de acesso da API [SECRET] revogada; token de integração [SECRET]; $[SECRET]; la contraseña es [SECRET]; <entry key=\"db.password\">[SECRET]</entry>"},
	{"behind a hyphen, of a card, in a query", "senha - Abc@123; CVV 123; https://h/x?key=a1b2c3d4e5f6a7b8&y=1", "senha - [SECRET]; CVV [SECRET]; https://h/x?key=[SECRET]&y=1"},
	{"web tokens", "x " + webToken + " y, jwt=" + webToken, "x [SECRET] y, jwt=[SECRET]"},
	{"longer than a notation is read", "x " + webToken + strings.Repeat("Ab1", 300), "x [SECRET]"},
	{"keys of vendors", "AKIAIOSFODNN7EXAMPLE ghp_0123456789abcdefghij xoxb-123456789012-abcdef", "[SECRET] [SECRET] [SECRET]"},
	{"our own, wherever they stand", "unknown rwt_abcdefghijklmnopqrstuvwxyz234567abcdefghijklmnopqrst refused; key=whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD/x==; the prefix rwt_ stays",
		"unknown [SECRET] refused; key=[SECRET]; the prefix rwt_ stays"},
	{"keys of APIs", "api_key=abc; API key: 0a1b2c3d; secret-key: abc; Ocp-Apim-Subscription-Key: abc", "api_key=[SECRET]; API key: [SECRET]; secret-key: [SECRET]; Ocp-Apim-Subscription-Key: [SECRET]"},
	{"a private key behind its name", "senha:: -----BEGIN PRIVATE KEY-----\nMIIEabc\n-----END PRIVATE KEY-----; nome:ghp_0123456789abcdefghij", "senha:: -----BEGIN PRIVATE KEY-----[SECRET]-----END PRIVATE KEY-----; nome:[SECRET]"},
	{"private key", "a -----BEGIN RSA PRIVATE KEY-----\nMIIEabcdefghijklmnop\n-----END RSA PRIVATE KEY----- b", "a -----BEGIN RSA PRIVATE KEY-----[SECRET]-----END RSA PRIVATE KEY----- b"},
	{"cookies", "Cookie: rw_session=abc.def; x=1; HttpOnly\nSet-Cookie: sid=abc; Path=/; Secure; HTTP 401, JSESSIONID=0A1B", "Cookie: [SECRET]; HttpOnly\nSet-Cookie: [SECRET]; Path=/; Secure; HTTP 401, JSESSIONID=[SECRET]"},
	{"options", `curl -u ana:abc https://h --user 'ana:a b' x --password abc --token abc -p "A1b2c3" -w 'x!Y2'; -p 8080 -u ana -w '%{http_code}'`,
		`curl -u [USER] https://h --user [USER] x --password [SECRET] --token [SECRET] -p "[SECRET]" -w '[SECRET]'; -p 8080 -u ana -w '%{http_code}'`},
	{"a log-on of Oracle", "jdbc:oracle:thin:ana/abc@//h:1521/x, sqlplus ana/abc@x", "jdbc:oracle:thin:[USER]@//h:1521/x, sqlplus [USER]@x"},
	{"a form's part", "form-data; name=\"senha\"\r\n\r\nxa b c\r\n--x", "form-data; name=\"senha\"\r\n\r\n[SECRET]\r\n--x"},
	{"a settings file's line", "line 2:\n  url: x\n  senha: xa b c\n  timeout: 3", "line 2:\n  url: x\n  senha: [SECRET]\n  timeout: 3"},
	{"a sentence", "a senha do portal é Abc-1 e não entra", "a senha do portal é [SECRET] e não entra"},
	{"digest, signatures", `Authorization: Digest username="x", realm="tiss", response="0a1b", qop=auth; X-Hub-Signature-256: sha256=0a1b2c3d; AWS4-HMAC-SHA256 Signature=0a1b`,
		`Authorization: Digest username="x", realm="tiss", response="[SECRET]", qop=auth; X-Hub-Signature-256: [SECRET]; AWS4-HMAC-SHA256 Signature=[SECRET]`},
	{"validators", "The value 'abc' of element 'ans:senhaPrestador' is not valid", "The value '[SECRET]' of element 'ans:senhaPrestador' is not valid"},
	{"users of URLs", "https://ana:a/b@h.com/x amqp://u:p@h sftp://u:a%23b%2Fc@h:22/x", "https://[USER]@h.com/x amqp://[USER]@h sftp://[USER]@h:22/x"},
	{"on the next line", "password=\nAbc123!x", "password=\n[SECRET]"},
	{"behind a tab", "password=\tabcdef", "password=\t[SECRET]"},
	{"before a line's end", "password=abcdef\nTIMEOUT", "password=[SECRET]\nTIMEOUT"},
	{"before a tab", "password=abcdef\tTIMEOUT", "password=[SECRET]\tTIMEOUT"},
	{"an encoded blank", "authorization=Bearer%20abc123def456ghi", "authorization=Bearer%20[SECRET]"},
	{"a scheme with a sign", "bearer: abc123def456ghi", "bearer: [SECRET]"},
	{"SAML", "SAMLResponse=PHNhbWxwOlJlc3BvbnNl&x=1", "SAMLResponse=[SECRET]&x=1"},
	{"a log-in's query", "https://h/cb?code=a1b2c3d4e5f6g7&state=xyz123abc456", "https://h/cb?code=[SECRET]&state=[SECRET]"},
	{"glued to its option", "mysql -u root -pSECRET db", "mysql -u root -p[SECRET] db"},
	{"access code", "código de acesso 48213 inválido", "código de acesso [SECRET] inválido"},
	{"access code, assigned", "código de acesso: abc4821", "código de acesso: [SECRET]"},
	{"a Cyrillic letter", "p\u0430ssword=abcdef", "p\u0430ssword=[SECRET]"},
	{"unknown words before the sign", "Password for user admin: S3cret!, senha provisória: 998877, chave da API: 9a8b7c6d", "Password for user admin: [SECRET], senha provisória: [SECRET], chave da API: [SECRET]"},
	{"an argument", "PDO->__construct('mysql:host=h', 'user', 'pa55#x') mysqli_connect('h', 'u', 'segredo')", "PDO->__construct('mysql:host=h', 'user', '[SECRET]') mysqli_connect('h', 'u', '[SECRET]')"},
	{"an argument of a log-in", "#2 Tiss.php(88): Tiss->login('portal', 'Verao') ftp_login($c, 'u', 'abc')", "#2 Tiss.php(88): Tiss->login('portal', '[SECRET]') ftp_login($c, 'u', '[SECRET]')"},
	{"a word that nothing follows", "senha do portal: Girassol; login fat01/Girassol77 recusado; senha antiga abc19d expirou", "senha do portal: [SECRET]; login fat01/[SECRET] recusado; senha antiga [SECRET] expirou"},
	{"a new one", "a senha do portal foi alterada para Trocar@31", "a senha do portal foi alterada para [SECRET]"},
	{"PHP", "[senha] => abc [\"password\"]=>\n string(3) \"abc\"", "[senha] => [SECRET] [\"password\"]=>\n string(3) \"[SECRET]\""},
	{"up to a query", "GET /x;jsessionid=0A1B2C?protocolo=778812, password=ab?c=d1", "GET /x;jsessionid=[SECRET]?protocolo=778812, password=[SECRET]"},
	{"an environment's variable", `PG_PASSWORD: 'r1acho-doce' "DB_PASSWORD": "abc" APP_TOKEN: a1b2c3d4e5 DB_PWD = 'abc' store_pass: "abc"`, `PG_PASSWORD: '[SECRET]' "DB_PASSWORD": "[SECRET]" APP_TOKEN: [SECRET] DB_PWD = '[SECRET]' store_pass: "[SECRET]"`},
	{"before its name", "48 29 17 é o seu código de acesso; 4829-x is your access code; 482917 é sua senha", "[SECRET] é o seu código de acesso; [SECRET] is your access code; [SECRET] é sua senha"},
	{"an address within it", "password=ana@x.com#99 x", "password=[SECRET] x"},
	{"connection strings' other keys", "Server=x;Pwd=Ipe@Roxo55;Connect Timeout=15", "Server=x;Pwd=[SECRET];Connect Timeout=15"},
	{"a container's variable", "- name: DB_PASSWORD\n  value: \"tr0car-isso\"\n- name: APP_API_KEY\n  value: abcdefg\n- name: LOG_LEVEL\n  value: \"debug\"",
		"- name: DB_PASSWORD\n  value: \"[SECRET]\"\n- name: APP_API_KEY\n  value: [SECRET]\n- name: LOG_LEVEL\n  value: \"debug\""},
	{"a code that a quoted sentence tells", `o SMS: "Seu código de acesso é 714092" e não entra; senha ...... abc12x`, `o SMS: "Seu código de acesso é [SECRET]" e não entra; senha ...... [SECRET]`},
	{"HTML", "<td>Senha</td><td>abc</td> <b>Senha:</b> abc", "<td>Senha</td><td>[SECRET]</td> <b>Senha:</b> [SECRET]"},
	{"keys with a scheme", `APP_KEY=base64:Zm9vYmFyYmF6cXV4 app-key: "hex:0a1b2c3d4e5f6071" --token=sha256~AbCdEf0123456789 db_key=vault:v1:8SDd3WHDOjf7mq69==`, `APP_KEY=[SECRET] app-key: "[SECRET]" --token=[SECRET] db_key=vault:v1:[SECRET]`},
	{"options of clients", `redis-cli -h h -a Girass0l ping; sqlplus -s ana/Girass0l@x; smbclient //h/x -U ana%Girass0l; unzip -P Girass0l x`, `redis-cli -h h -a [SECRET] ping; sqlplus -s [USER]@x; smbclient //h/x -U [USER]; unzip -P [SECRET] x`},
	{"options of clients that take no other", `sshpass -p 'girassol' ssh x; openssl x -passin pass:girassol x; keytool -list -storepass changeit -keypass changeit`, `sshpass -p '[SECRET]' ssh x; openssl x -passin pass:[SECRET] x; keytool -list -storepass [SECRET] -keypass [SECRET]`},
	{"a private key whose end is far away", "-----BEGIN PRIVATE KEY-----\nMIIEabcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJ\n-----END PRIVATE KEY-----\nexit 1", "-----BEGIN PRIVATE KEY-----[SECRET]-----END PRIVATE KEY-----\nexit 1"},
	{"told by a colleague", "a senha do portal agora é girassol77 anota; senha nova: Girassol@77; a senha mudou pra Girassol77; o código que chegou no sms foi 482913; o token é 482913; senha do wifi girassol77; a senha que funcionou foi Girassol77; credenciais: ana.prates / Girassol77", "a senha do portal agora é [SECRET] anota; senha nova: [SECRET]; a senha mudou pra [SECRET]; o código que chegou no sms foi [SECRET]; o token é [SECRET]; senha do wifi [SECRET]; a senha que funcionou foi [SECRET]; credenciais: [USER] / [SECRET]"},
	{"alone on the line below", "segue a senha\nGirassol77\nsenha nova\nXk92mmLp\npassword\n\nab#cd1\n> *senha de acesso:*\n> Xk92mmLp", "segue a senha\n[SECRET]\nsenha nova\n[SECRET]\npassword\n\n[SECRET]\n> *senha de acesso:*\n> [SECRET]"},
	{"personal data beside it", "senha=abc CPF {bad} nome: Ana senha: {cpf}", "senha=[SECRET] CPF [CPF] nome: [NAME] senha: [SECRET]"},
}

func TestSecretsAreTaken(t *testing.T) {
	for _, c := range secrets {
		if got := redact.Text(fill(c.text)); got != fill(c.want) {
			t.Errorf("%s:\n text %q\n got  %q\n want %q", c.why, fill(c.text), got, fill(c.want))
		}
	}
}

// TestWordsOfSecretsAreKept: what tells that a secret is wrong, and not what it is.
func TestWordsOfSecretsAreKept(t *testing.T) {
	for _, text := range []string{
		"Senha inválida. Senha expirada para o usuário. usuário ou senha incorretos; LoginInvalido SenhaInvalida: Unimed",
		"AUTHORIZATION_DENIED: Unimed recusou a guia 123; PASSWORD_EXPIRED: trocar; WRONG_PASSWORD: x",
		"senha: inválida; password: must not be blank; token: expired; Authorization: missing; senha=null; \"senha\":\"\"; senha: ****",
		`{"password":["must not be blank"]}`, `Unexpected token < in JSON at position 0; Unexpected token: "}"; Unexpected token 'o', "portal fora" is not valid JSON`,
		"Bearer token inválido; Basic authentication failed; WWW-Authenticate: Basic realm=\"tiss\"; the bearer of this",
		"chave de acesso inválida; chave primária duplicada: 12345; chave: 35200114200166000187550010000000046550010018; sessão expirada; assinatura inválida",
		"cookies are disabled; Cookie: ausente; Set-Cookie missing", "value 'null' of element 'senha'", "token=; senha=; password:",
		"Bad credentials at br.hosp.AuthFilter.doFilter(AuthFilter.java:39) TokenStore.java:1234567890",
		"password=\nTIMEOUT",
		"SoapClient->__construct('https://h/x?wsdl', Array); log('abc', 'def', 'ghi9#'); Blog->login('a')",
		"a senha do portal foi alterada para acesso ao lote; senha enviada para o lote2025a",
		"(using password: YES), senha: sim, mongodb://h/x?authSource=admin&x=1",
		"opaquetype: bearer",
		"https://h/cb?code=503&state=ok",
		"a senha\nGuia voltou\nsenha\nERR_4012\nsenha\nCBO-2231\na senha\n1206\na senha venceu\nXk92mmLp\nsenha\nTISS4.01\nesqueci a senha\nlote 2025a",
		`auth_method="openid-connect" auth_type="openid-connect" auth_mode=kerberos-spnego token_type="Bearer" grant_type=password authMethod: 'basic', auth=none`,
		"senha nova: inválida; a senha agora é obrigatória; a senha mudou pra melhor; o código que chegou não entra; token é 404; senha do wifi não funciona; credenciais / certificado2024; credenciais invalidas 401",
		"key=hex: valor inválido; base64: dado truncado; mkdir -p /var/x1; tar -P /etc/x2; unzip -P; redis-cli -a; smbclient -U ana%; -passin env:PASS; ssh -p 2222; docker run -p 8080:80/tcp x",
		"password expired; token expired", `"token_type":"bearer"`,
		"WRONG_PASSWORD: 'x1'; TOKEN_EXPIRED: '2025a'", "482917 é o código da guia; este é o código de acesso", "1206 é senha inválida",
		`secret "tiss-cert" not found; secrets "tiss-cert" is forbidden`,
		"token expirado no request 8f14e45f-ceea-467f-a8a8-8a1c2d3e4f50; sessão do lote LOTE20250310000123; chave da nota 35200114200166000187550010000000046550010018",
		"senha - 40301630 procedimento; senha - campo obrigatório",
		"AUTH <password> called without any password; login --password <password> --user <user>",
		"https://h/oauth/token/introspect /hooks/tiss/v4_01_00/retorno /webhooks/retornoLoteGuias /apikey/status /services/tissSolicitacaoProcedimentoV40100",
		"seu código de prestador é 482913; Use o código 40301630 da tabela TUSS; código de acesso ao arquivo: 404; seu código é inválido; código do procedimento é 40301630; digite o código do procedimento 40301630 no campo",
		"- name: PASSWORD_FILE\n  value: /run/x\n- name: TOKEN_URL\n  value: https://h/token",
		"- name: DB_PASSWORD\n  valueFrom:\n    secretKeyRef:\n      name: tiss-db", "- name: DB_PASSWORD\n- name: X\n  value: abcdef",
		"senha do usuário inválida: Unimed; senha do certificado: arquivo corrompido; login 10/2024; senha: Portal fora",
		`"Seu código de acesso é inválido", o código da guia é 714092`,
		"HTTP 401 Unauthorized: invalid_client; grant_type=client_credentials; opaquetype: bearer", "the secret is out, API key not found",
	} {
		if got := redact.Text(text); got != text {
			t.Errorf("%q\n became %q", text, got)
		}
	}
}
