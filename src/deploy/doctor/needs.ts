import type { ServiceName } from '../stack-plan.ts';
import type { DoctorContext } from './context.ts';

/** Preconditions of checks. Each returns why it is missing, in words; null when it is there. */
const needs = {
  engine: (context: DoctorContext) => reasonOf(() => context.engine(), 'No container engine answers.'),
  git: ({ git }: DoctorContext) => (git instanceof Error ? 'There is no git.' : null),
  network: ({ isOffline }: DoctorContext) => (isOffline ? 'Not checked offline.' : null),
  env: ({ env }: DoctorContext) => (env === null ? 'There is no .env to read.' : null),
  config: (context: DoctorContext) => reasonOf(() => context.config(), 'There is no configuration to go by.'),
  app: (context: DoctorContext) => reasonOf(() => context.app(), 'The id or the key of the App is missing or wrong.'),
  publicHost: (context: DoctorContext) =>
    reasonOf(() => context.publicHost(), 'The Caddyfile does not say for which host it is.'),
  backend: (context: DoctorContext) => running(context, 'backend'),
  agent: (context: DoctorContext) => running(context, 'agent'),
  gateway: (context: DoctorContext) => running(context, 'webhook-gateway'),
} as const satisfies Record<string, (context: DoctorContext) => string | null | Promise<string | null>>;
export type Need = keyof typeof needs;

/** Why the check cannot be made; null: it can. */
export const unmet = (need: Need, context: DoctorContext): string | null | Promise<string | null> =>
  needs[need](context);

function reasonOf(ask: () => unknown, reason: string): string | null {
  try {
    ask();
    return null;
  } catch {
    // Another check reports the problem.
    return reason;
  }
}

async function running(context: DoctorContext, name: ServiceName): Promise<string | null> {
  const missing = needs.engine(context);
  if (missing !== null) return missing;
  const state = await context.service(name).catch(() => undefined);
  return state?.state === 'running' ? null : `The container of ${name} does not run.`;
}
