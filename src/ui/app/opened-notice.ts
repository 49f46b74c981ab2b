/** Opens the route of a clicked notice, which the service worker sends to the open page, until `signal` aborts. */
export function followNotices(signal: AbortSignal): void {
  if (!('serviceWorker' in navigator)) return;
  const follow = ({ data }: MessageEvent<unknown>) => {
    const { type, hash } = (data ?? {}) as { readonly type?: unknown; readonly hash?: unknown };
    if (type === 'oratorio.open' && typeof hash === 'string' && hash.startsWith('#/inbox')) location.hash = hash;
  };
  navigator.serviceWorker.addEventListener('message', follow, { signal });
}
