/** Where git finds repositories of an API: github.com, or the host of an Enterprise server. */
export function hostOf(
  endpoint: string | null,
  { signal }: { readonly signal: AbortSignal },
): { readonly host: string; readonly signal: AbortSignal } {
  const host = endpoint === null ? 'github.com' : new URL(endpoint).host;
  return { host: host === 'api.github.com' ? 'github.com' : host, signal };
}
