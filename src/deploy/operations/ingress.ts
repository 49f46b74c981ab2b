import { defaults } from '../defaults.ts';
import { publicHostIn } from '../doctor/index.ts';
import { type Engine, type ServiceState, serviceStates } from '../engine/index.ts';
import { webhookSecret } from '../plan/index.ts';
import { readStack, readText, type Stack } from '../stack/index.ts';

/** Whether deliveries can reach a stack, and where. */
export interface IngressStatus {
  readonly isEnabled: boolean;
  /** Where the App is to deliver to; null without a gateway, or when its file was changed by hand. */
  readonly url: string | null;
  readonly hasSecret: boolean;
  /** State of the gateway's container; null: it does not exist. */
  readonly gateway: string | null;
}

export function ingressOf(stack: Stack, services: readonly ServiceState[]): IngressStatus {
  const gateway = services.find(({ service }) => service === 'webhook-gateway');
  const verdict = stack.ownership.caddyfile === 'missing' ? null : publicHostIn(readText(stack.layout.caddyfile));
  return {
    isEnabled: stack.hasIngress,
    url: verdict?.ok ? `${verdict.host.origin}${defaults.webhookPath}` : null,
    hasSecret: Boolean(stack.values.get(webhookSecret)),
    gateway: gateway === undefined ? null : `${gateway.state}${gateway.health === 'none' ? '' : `, ${gateway.health}`}`,
  };
}

/** State of the ingress of the stack in a directory. @throws DeployError notAStack, or when the engine cannot be asked */
export async function ingressStatus(
  directory: string,
  engine: Engine,
  { signal }: { readonly signal: AbortSignal },
): Promise<IngressStatus> {
  const stack = readStack(directory);
  return ingressOf(stack, await serviceStates(engine, stack.layout, { signal }));
}
