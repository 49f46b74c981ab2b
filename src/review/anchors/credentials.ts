/** A kind of credential that is known by its form. */
export interface CredentialKind {
  readonly name: string;
  /**
   * Matches just enough to be sure, and nothing of unlimited length: so a text of any shape is read in linear time.
   */
  readonly pattern: RegExp;
  /** Decides the cases that the pattern alone cannot: gets the matched groups. */
  readonly isReal?: (...found: string[]) => boolean;
}

/** Bits for each character (Shannon). */
function entropy(text: string): number {
  const counts = new Map<string, number>();
  for (const char of text) counts.set(char, (counts.get(char) ?? 0) + 1);
  let sum = 0;
  for (const count of counts.values()) sum -= (count / text.length) * Math.log2(count / text.length);
  return sum;
}

const kindOf = (char: string): 'a' | 'A' | '0' => (/\d/.test(char) ? '0' : /[A-Z]/.test(char) ? 'A' : 'a');

/** Words keep to one kind of letter for long, in any combination; random characters do not. */
export function looksRandom(text: string): boolean {
  const bare = text.replace(/[^A-Za-z0-9]/g, '').replace(/[A-Z](?=[a-z])/g, (letter) => letter.toLowerCase());
  const kinds = [...bare].map(kindOf);
  const changes = kinds.filter((kind, index) => index > 0 && kind !== kinds[index - 1]).length;
  return kinds.includes('0') && entropy(text) >= 3 && changes / bare.length >= 0.3;
}

/** `xxxxxxxx`, `ghp_EXAMPLE…`, `${TOKEN}`: placeholders that documents write for a credential. */
const isPlaceholder = (text: string): boolean =>
  entropy(text) < 2.5 || /example|placeholder|redacted|your[-_]?|x{4}|\*{3}|\.{3}/i.test(text);
const isFilledIn = (all = '', value = all): boolean => !isPlaceholder(value);
const isRandom = (_ = '', value = ''): boolean => !isPlaceholder(value) && looksRandom(value);

const fixed = (name: string, pattern: RegExp): CredentialKind => ({ name, pattern, isReal: isFilledIn });

/** Shapes that the services publish for secret scanners; lengths are the shortest that they issue, or shorter. */
export const credentialKinds: readonly CredentialKind[] = [
  {
    name: 'a private key',
    pattern: /-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----[\s\S]{0,300}?[A-Za-z0-9+/]{32}/,
  },
  // Any length since 2026: ghs_ may hold a JSON Web Token.
  fixed('a GitHub token', /gh[opsur]_[A-Za-z0-9_.-]{16}|github_pat_[A-Za-z0-9_]{16}/),
  fixed('an AWS access key', /(?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16}(?![0-9A-Z])/),
  fixed('a Slack token', /xox[abceoprs]-[A-Za-z0-9-]{10}|xapp-\d-[A-Za-z0-9-]{10}/),
  fixed('a webhook address', /hooks\.slack\.com\/services\/T\w{6}|discord(?:app)?\.com\/api\/webhooks\/\d{10}/),
  fixed('a Google API key', /AIza[0-9A-Za-z_-]{35}|ya29\.[0-9A-Za-z_-]{20}|GOCSPX-[0-9A-Za-z_-]{20}/),
  fixed('a Stripe key', /[rs]k_(?:live|test)_[0-9A-Za-z]{16}|whsec_[0-9A-Za-z+/]{24}/),
  fixed('an npm token', /npm_[A-Za-z0-9]{36}/),
  fixed('a PyPI token', /pypi-AgE[A-Za-z0-9_-]{16}/),
  fixed('a GitLab token', /gl(?:pat|ptt|rt|dt|cbt|soat)-[A-Za-z0-9_-]{20}/),
  fixed('a SendGrid key', /SG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{40}/),
  fixed('a Hugging Face token', /\bhf_[A-Za-z0-9]{30}/),
  fixed('a Docker token', /dckr_(?:pat|oat)_[A-Za-z0-9_-]{20}/),
  fixed('a Vault token', /\bhv[sb]\.[A-Za-z0-9_-]{24}/),
  fixed('a DigitalOcean token', /do[opr]_v1_[a-f0-9]{40}/),
  fixed('a Shopify token', /shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}/),
  fixed('a Telegram token', /\b\d{8,10}:AA[A-Za-z0-9_-]{33}/),
  fixed('an Azure key', /AccountKey=[A-Za-z0-9+/]{40}|SharedAccessKey=[A-Za-z0-9+/]{40}/),
  fixed('an age key', /AGE-SECRET-KEY-1[A-Z0-9]{30}/),
  fixed('a Grafana token', /gl(?:sa|c)_[A-Za-z0-9]{32}/),
  fixed('a JSON Web Token', /[A-Za-z0-9_-]{10}\.eyJ[A-Za-z0-9_-]{10}/),
  { name: 'an API key', pattern: /\bsk-(?:[a-z]{2,10}-){0,2}([A-Za-z0-9_-]{20})/, isReal: isRandom },
  { name: 'a header with a credential', pattern: /\b(?:Bearer|Basic) ([A-Za-z0-9+/=_.~-]{16,200})/i, isReal: isRandom },
  {
    name: 'a password in a URL',
    pattern: /:\/\/([^\s/:@"'`<>]{0,100}):([^\s/@"'`<>]{3,200})@([A-Za-z0-9.[-]{0,20})/,
    isReal: isUrlPassword,
  },
  {
    name: 'a password',
    pattern:
      /(?:pass(?:word|wd|phrase)?|pwd|secret|token|credential|(?:api|access|account|auth|encryption|private|secret|signing)[_-]?key)["'\]]{0,2}[ \t]{0,4}(?::|=>?|:=)[ \t]{0,4}["'`]{0,3}(?=([^\s"'`,;(){}[\]<>$]{10,200}))\1(?!\()/i,
    isReal: isRandom,
  },
];

const commonPasswords =
  /^(?:pass(?:word|wd)?|pwd|pw|secret|token|change_?me|hunter2|test|root|admin|postgres|123456?)\d{0,3}$/i;

/** Whether the password of a URL is real, unlike those of `postgres://user:password@host` and `https://user:${TOKEN}@…`. */
function isUrlPassword(_ = '', user = '', password = '', host = ''): boolean {
  if (user === password || commonPasswords.test(password) || /^[$%{*.]/.test(password)) return false;
  return !/^(?:[\w.-]*\.)?example\b/i.test(host) && !/x{3}|\*{3}|\.{3}/i.test(password);
}

/** Names the kind of credential that a text seems to hold; undefined for none. */
export function credentialIn(text: string): string | undefined {
  return credentialKinds.find(({ pattern, isReal }) => {
    for (const found of text.matchAll(new RegExp(pattern, pattern.flags.includes('i') ? 'gi' : 'g'))) {
      if (!isReal || isReal(...found)) return true;
    }
    return false;
  })?.name;
}
