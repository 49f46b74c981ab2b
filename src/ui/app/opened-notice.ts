/** Opens the route of a clicked notice: the service worker sends it to the open page. */
export function followNotices(): void {
  if (!('serviceWorker' in navigator)) return;
  navigator.serviceWorker.addEventListener('message', ({ data }: MessageEvent<unknown>) => {
    const { type, hash } = (data ?? {}) as { readonly type?: unknown; readonly hash?: unknown };
    if (type === 'oratorio.open' && typeof hash === 'string' && hash.startsWith('#/inbox')) location.hash = hash;
  });
}
