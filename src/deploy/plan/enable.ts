import { defaults } from '../defaults.ts';
import { changeEnv, overlayFile } from '../files/index.ts';
import { stackFiles } from '../layout.ts';
import type { Plan } from '../stack-plan.ts';
import { awaitHealthy, phase, start, writeEnv, writeOurs } from './steps.ts';

/** The secret that deliveries are signed with. */
export interface WebhookSecret {
  readonly value: string;
  /** Made for this plan, to be printed once. */
  readonly isNew: boolean;
  /** Takes the place of another one. */
  readonly isChanged: boolean;
}

export interface EnableFacts {
  readonly directory: string;
  /** Current text of `.env`. */
  readonly env: string;
  readonly isSelinux: boolean;
  readonly caddyfile: string;
  readonly secret: WebhookSecret;
  readonly gatewayImage: string;
  readonly notes: readonly string[];
}

export const webhookSecret = 'ORATORIO_GITHUB_WEBHOOK_SECRET';

/** Deliveries from the Internet reach the backend (specification §4.4). The phases are states of the ingress machine. */
export function planEnable(facts: EnableFacts): Plan {
  const { directory, env, secret, caddyfile, gatewayImage, isSelinux, notes } = facts;
  return {
    command: 'webhook enable',
    directory,
    onFailure: 'undo',
    reveals: secret.isNew ? [webhookSecret] : [],
    notes,
    phases: [
      phase('validating', 'Checking the stack and the host'),
      phase('secret', secret.isNew ? 'Making the secret of the webhook' : 'Checking the secret of the webhook'),
      phase('ports', `Checking ports ${defaults.gatewayPorts.join(' and ')}`, [
        { do: 'checkPorts', ports: defaults.gatewayPorts, host: '*', service: 'webhook-gateway' },
      ]),
      phase('files', 'Writing the configuration of the gateway', [
        writeEnv(changeEnv(env, { [webhookSecret]: secret.value, ORATORIO_GATEWAY_IMAGE: gatewayImage })),
        writeOurs(stackFiles.caddyfile, caddyfile),
        writeOurs(stackFiles.overlay, overlayFile({ isSelinux })),
      ]),
      phase('validate', 'Checking both configurations', [
        { do: 'checkComposition' },
        { do: 'pullImages', services: ['webhook-gateway'] },
        { do: 'checkGateway' },
      ]),
      phase('start', 'Starting the gateway', [start(['webhook-gateway'], true)]),
      phase('recreate', 'Giving the backend the secret', [
        start(['backend'], true),
        awaitHealthy(['backend', 'webhook-gateway']),
      ]),
    ],
  };
}
