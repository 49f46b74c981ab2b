/** Goes where a notice leads that the user has opened: the worker asks the page that is open. */
export function followNotices(): void {
  if (!('serviceWorker' in navigator)) return;
  navigator.serviceWorker.addEventListener('message', ({ data }: MessageEvent<unknown>) => {
    const { type, hash } = (data ?? {}) as { readonly type?: unknown; readonly hash?: unknown };
    if (type === 'oratorio.open' && typeof hash === 'string' && hash.startsWith('#/inbox')) location.hash = hash;
  });
}
