const key = 'oratorio.token';

/**
 * The token this tab was opened with. It comes in the fragment (`#token=…`), which browsers send to no server; it is moved
 * to the tab's session storage at once, so that it is in no history entry, bookmark or screenshot of the address bar.
 * `at` after it (`#token=…&at=/sessions/x`) is the route to open.
 */
export function takeToken(): string | null {
  const fragment = new URLSearchParams(location.hash.slice(1));
  const given = fragment.get('token');
  if (!given) return sessionStorage.getItem(key);
  keepToken(given);
  const at = fragment.get('at') ?? '';
  history.replaceState(null, '', `${location.pathname}${location.search}${at ? `#${at}` : ''}`);
  return given;
}

export function keepToken(token: string): void {
  sessionStorage.setItem(key, token);
}

/** Forgets a token that the server does not accept (any more). */
export function forgetToken(): void {
  sessionStorage.removeItem(key);
}
