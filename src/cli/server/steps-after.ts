import { hostname, userInfo } from 'node:os';
import { defaults } from '../../deploy/index.ts';

/** Steps for the operator in the App when the gateway is on (gateway rule 5). */
export const appSteps = (url: string): readonly string[] => [
  'In the GitHub App:',
  `  Webhook URL     ${url}`,
  '  Webhook secret  the one above, if one was shown',
  '  Content type    application/json, SSL verification on',
  '  Events          Issue comment · Pull request · Pull request review comment · Check run',
  `Then: oratorio server doctor --only ingress`,
];

/** User and host that a tunnel leads to, as far as this host knows. */
export function tunnelTarget(): { readonly user: string; readonly host: string } {
  return { user: userInfo().username, host: hostname() };
}

/** Explains how a client on another machine reaches the backend (gateway rule 6). */
export const tunnelSteps = (tunnel: string): readonly string[] => [
  'From your own machine:',
  `  ${tunnel}`,
  `  then open http://127.0.0.1:${defaults.ports.backend}, or give --url http://127.0.0.1:${defaults.ports.backend} to oratorio review`,
];
