/** Notices outside the page that a request waits: ntfy, the desktop, Web Push. Each way is an actor of `notification-channel`. */
export { showOnDesktop } from './desktop.ts';
export { Notices } from './notices.ts';
export { sendToNtfy } from './ntfy.ts';
export { type PushNetwork, WebPush } from './push/index.ts';
