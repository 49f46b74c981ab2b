/** Whether a text is an absolute http or https URL. */
export function isHttpUrl(value: string): boolean {
  return URL.canParse(value) && /^https?:$/.test(new URL(value).protocol);
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
