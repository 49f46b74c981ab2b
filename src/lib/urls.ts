/** Whether a text is an absolute http or https URL, whose user name and password can be decoded. */
export function isHttpUrl(value: string): boolean {
  if (!URL.canParse(value)) return false;
  const { protocol, username, password } = new URL(value);
  return /^https?:$/.test(protocol) && decoded(username + password) !== undefined;
}

/** Decoded password of an address; empty: the address has none. */
export function passwordIn(address: string): string {
  const { password } = URL.canParse(address) ? new URL(address) : { password: '' };
  return decoded(password) ?? password;
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

/** An address without its user name and password; it need not be valid. */
export const withoutUserInfo = (text: string): string => text.replace(/^([a-z][a-z\d+.-]*:\/*)?.*@/is, '$1…@');

/** A text that may be an address, valid or not, with its user name and password masked. Other texts stay unchanged. */
export function maskedAddress(text: string): string {
  if (!/^[a-z][a-z\d+.-]*:\//i.test(text)) return text;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  // Not valid, or without a host, so that the parser takes the password for a part of the path.
  if (!url?.host) return withoutUserInfo(text);
  if (url.username === '' && url.password === '') return text;
  if (url.username !== '') url.username = '…';
  if (url.password !== '') url.password = '…';
  return url.href.replaceAll(encodeURIComponent('…'), '…');
}
