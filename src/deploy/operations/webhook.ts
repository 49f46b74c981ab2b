import { serviceStates } from '../engine/index.ts';
import { caddyfile, newSecret } from '../files/index.ts';
import type { PublicHost } from '../host/index.ts';
import { type GatewayFile, planDisable, planEnable, type WebhookSecret, webhookSecret } from '../plan/index.ts';
import { isSelinuxEnforcing, type Ownership, readStack, readText, type Stack, stackFiles } from '../stack/index.ts';
import type { WebhookAnswers } from './answers.ts';
import { type Change, mustBeStack } from './change-stack.ts';
import { checkHost } from './check-host.ts';
import { defaultImages, fetchImage } from './images.ts';

/** Deliveries of GitHub reach the backend of a stack (specification §4.4). */
export const enableChange = (directory: string, answers: WebhookAnswers): Change => ({
  directory,
  command: 'webhook enable',
  check: mustBeStack(directory),
  async prepare(preparing) {
    const stack = readStack(directory);
    const host = checkHost(answers.publicHost, answers.certificates);
    const services = await serviceStates(await preparing.engine(), stack.layout, { signal: preparing.session.signal });
    const isAgentUp = services.some(({ service, state }) => service === 'agent' && state === 'running');
    const { acmeEmail, certificates } = answers;
    const secret = secretOf(stack.values.get(webhookSecret), answers.secret);
    const gateway = stack.values.get('ORATORIO_GATEWAY_IMAGE') || defaultImages.gateway;
    return planEnable({
      directory,
      env: readText(stack.layout.env),
      isSelinux: isSelinuxEnforcing(),
      caddyfile: caddyfile({ host, acmeEmail, certificates }),
      secret,
      gatewayImage: await fetchImage(preparing, gateway, { build: null, isNewer: false, otherwise: otherGateway }),
      notes: [...(isAgentUp ? [] : [stoppedAgent]), ...(secret.isChanged ? [changedSecret] : []), ...duties(host)],
    });
  },
});

/** The webhook's secret: the given one, else the one of the stack, else a new one. */
export function secretOf(current: string | undefined, given: string | null): WebhookSecret {
  if (given !== null) return { value: given, isNew: false, isChanged: Boolean(current) && given !== current };
  if (current) return { value: current, isNew: false, isChanged: false };
  return { value: newSecret(), isNew: true, isChanged: false };
}

const stoppedAgent =
  'The agent server is not running: deliveries arrive, and no review starts. Start it: oratorio server restart --service agent';

const otherGateway =
  'Set ORATORIO_GATEWAY_IMAGE in .env to an image that this machine has or can fetch, then run the same command again.';

const changedSecret = 'The stack has another secret of the webhook: it is replaced. Enter the new one in the App.';

/** Steps that only the operator can take (gateway rules 4 and 5). */
export const duties = ({ kind, display }: PublicHost): readonly string[] => [
  ...(kind === 'dns' ? [`${display} must lead to this machine, in DNS.`] : []),
  'TCP ports 80 and 443 must be open from the Internet; 5087, the port of the agent server and that of the Dashboard must not be.',
];

/** The gateway goes; everything else stays. */
export const disableChange = (directory: string): Change => ({
  directory,
  command: 'webhook disable',
  check: mustBeStack(directory),
  async prepare({ engine, session: { signal } }) {
    const { layout, hasIngress, ownership } = readStack(directory);
    const services = await serviceStates(await engine(), layout, { signal });
    const hasContainer = services.some(({ service }) => service === 'webhook-gateway');
    const hasGateway = hasIngress || ownership.caddyfile !== 'missing' || hasContainer;
    return planDisable(directory, hasGateway, keptFiles(ownership));
  },
});

/** Files of the gateway that were changed by hand or not made here: only their owner removes them. */
function keptFiles({ overlay, caddyfile }: Stack['ownership']): readonly GatewayFile[] {
  const isKept = (owner: Ownership): boolean => owner === 'edited' || owner === 'foreign';
  return [...(isKept(overlay) ? [stackFiles.overlay] : []), ...(isKept(caddyfile) ? [stackFiles.caddyfile] : [])];
}

/** Remaining files of a removed gateway, for the stack in a directory. */
export const keptGatewayFiles = (directory: string): readonly GatewayFile[] =>
  keptFiles(readStack(directory).ownership);
