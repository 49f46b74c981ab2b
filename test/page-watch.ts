/** Collects forbidden acts of pages of Oratorio: errors, violations of its policy, requests to other origins. */
import type { BrowserContext } from 'playwright-core';

export interface PageWatch {
  /** Script errors, logged errors, and violations of the content security policy. */
  readonly complaints: string[];
  /** Addresses of requests to other origins. */
  readonly foreign: string[];
}

export interface PageWatchOptions {
  readonly isOwn: (url: string) => boolean;
  /** The test refuses or cuts requests, which the browser logs as errors. */
  readonly cutsRequests?: boolean | undefined;
}

const isOfNetwork = /Failed to load resource|net::ERR|WebSocket connection/;
const needsNoServer = /^(?:blob|data|about):/;

/** Watches all pages of a context, none of which has loaded anything, and adds its findings to `watch`. */
export async function watchPages(
  context: BrowserContext,
  { isOwn, cutsRequests = false }: PageWatchOptions,
  watch: PageWatch = { complaints: [], foreign: [] },
): Promise<PageWatch> {
  context.on('console', (message) => {
    if (message.type() !== 'error' || (cutsRequests && isOfNetwork.test(message.text()))) return;
    watch.complaints.push(message.text());
  });
  context.on('weberror', (error) => watch.complaints.push(String(error.error())));
  context.on('request', (request) => {
    if (!isOwn(request.url()) && !needsNoServer.test(request.url())) watch.foreign.push(request.url());
  });
  await context.addInitScript(() => {
    addEventListener('securitypolicyviolation', (event) => {
      console.error(`policy: ${event.violatedDirective} ${event.blockedURI}`);
    });
  });
  return watch;
}
