const key = 'oratorio.token';

/**
 * The token this tab was opened with. It comes in the fragment (`#token=…`), which browsers send to nobody; it is moved
 * to the tab's session storage at once, so that it is in no history entry, bookmark or screenshot of the address bar.
 */
export function takeToken(): string | null {
  const fragment = new URLSearchParams(location.hash.slice(1));
  const given = fragment.get('token');
  if (!given) return sessionStorage.getItem(key);
  sessionStorage.setItem(key, given);
  fragment.delete('token');
  const rest = fragment.get('at') ?? '';
  history.replaceState(null, '', `${location.pathname}${location.search}${rest ? `#${rest}` : ''}`);
  return given;
}

/** The Hub does not accept it (any more). */
export function forgetToken(): void {
  sessionStorage.removeItem(key);
}
