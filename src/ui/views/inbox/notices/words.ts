import type { PushObstacle } from '../../../../../machines/browser.ts';

/** Text of the switch in a state, and its button. */
export interface SwitchWords {
  readonly text: string;
  readonly action?: { readonly label: string; readonly event: 'TURN.ON' | 'TURN.OFF' | 'CHECK' };
}

/** @param address host and port of the page */
export function obstacleInWords(obstacle: PushObstacle, { host, port }: { host: string; port: string }): string {
  if (obstacle === 'noWebPush')
    return 'This browser has no Web Push. On an iPhone or iPad, add the page to the Home Screen and open it there; elsewhere use ntfy or the desktop.';
  const own = port || '80';
  return `Browsers show notices of secure pages only; ${host} is not secure. Run ssh -L ${own}:127.0.0.1:${own} with the name of the Hub's machine and open the page at 127.0.0.1:${own}, or use https.`;
}

export const switchWords: Readonly<Record<string, SwitchWords>> = {
  checking: { text: 'Reading the abilities of this browser …' },
  denied: {
    text: 'This browser refuses notices of this page. Allow them in its settings for this site, beside the address.',
    action: { label: 'Check again', event: 'CHECK' },
  },
  off: {
    text: 'Notices while no page is open: off.',
    action: { label: 'Turn on notices', event: 'TURN.ON' },
  },
  subscribing: { text: 'Answer the question of the browser …' },
  on: {
    text: 'Notices while no page is open: on.',
    action: { label: 'Turn off notices', event: 'TURN.OFF' },
  },
  unsubscribing: { text: 'Turning notices off …' },
};

/** Words for a failure, with the reason of the browser or the Hub. */
export const failureInWords = (reason: string): SwitchWords => ({
  text: `Notices could not be changed: ${reason}`,
  action: { label: 'Try again', event: 'CHECK' },
});
