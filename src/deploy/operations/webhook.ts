import { serviceStates } from '../engine/index.ts';
import { caddyfile, newSecret } from '../files/index.ts';
import type { PublicHost } from '../host/index.ts';
import { planDisable, planEnable, type WebhookSecret, webhookSecret } from '../plan/index.ts';
import { isSelinuxEnforcing, readStack, readText } from '../stack/index.ts';
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
    await preparing.engine();
    const { acmeEmail, certificates } = answers;
    const secret = secretOf(stack.values.get(webhookSecret), answers.secret);
    const gateway = stack.values.get('ORATORIO_GATEWAY_IMAGE') || defaultImages.gateway;
    return planEnable({
      directory,
      env: readText(stack.layout.env),
      isSelinux: isSelinuxEnforcing(),
      caddyfile: caddyfile({ host, acmeEmail, certificates }),
      secret,
      gatewayImage: await fetchImage(preparing, gateway, { build: null, isNewer: false }),
      notes: [...(secret.isChanged ? [changedSecret] : []), ...duties(host)],
    });
  },
});

/** The webhook's secret: the given one, else the one of the stack, else a new one. */
export function secretOf(current: string | undefined, given: string | null): WebhookSecret {
  if (given !== null) return { value: given, isNew: false, isChanged: Boolean(current) && given !== current };
  if (current) return { value: current, isNew: false, isChanged: false };
  return { value: newSecret(), isNew: true, isChanged: false };
}

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
    return planDisable(directory, hasIngress || ownership.caddyfile !== 'missing' || hasContainer);
  },
});
