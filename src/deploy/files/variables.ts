import { createHash } from 'node:crypto';
import { defaults } from '../defaults.ts';
import type { ServiceName } from '../stack-plan.ts';

/** One line of `.env`. */
export interface Variable {
  /** Purpose for people: one sentence on the variable and on an empty value. */
  readonly purpose: string;
  readonly isSecret: boolean;
  /** Default for a missing or empty line; null: the composition is refused without it. */
  readonly default: string | null;
  /** The services that see its value, and the name they see it under. No other service does. */
  readonly given: Readonly<Partial<Record<ServiceName, string>>>;
}

const ofComposition = (value: string, purpose: string): Variable => ({
  purpose,
  isSecret: false,
  default: value,
  given: {},
});

/** Every variable of `.env`, in the order of the file. The one table: composition, `.env`, its example and the docs are made of it. */
export const variables = {
  COMPOSE_PROJECT_NAME: ofComposition(
    'oratorio-review',
    'Name of the stack: containers, networks and volumes begin with it. Another name is another stack.',
  ),
  ORATORIO_UID: ofComposition(
    String(defaults.user),
    'User the agent server and the backend run as; owns workspace/ and secrets/.',
  ),
  ORATORIO_GID: ofComposition(String(defaults.user), 'Group of that user.'),
  ORATORIO_IMAGE: ofComposition(defaults.image, 'Image of the agent server and the backend.'),
  ORATORIO_GATEWAY_IMAGE: ofComposition(defaults.gatewayImage, 'Image of the webhook gateway, where there is one.'),
  ORATORIO_BACKEND_PORT: ofComposition(
    String(defaults.ports.backend),
    'Port of the backend on the loopback of this host.',
  ),
  ORATORIO_AGENT_PORT: ofComposition(
    String(defaults.ports.agent),
    'Port of the agent server on the loopback of this host.',
  ),
  ORATORIO_DASHBOARD_PORT: ofComposition(
    String(defaults.ports.dashboard),
    'Port of the Dashboard on the loopback of this host.',
  ),
  ORATORIO_AGENT_MEMORY: ofComposition('4g', 'Memory the agent server may use.'),
  ORATORIO_BACKEND_MEMORY: ofComposition('2g', 'Memory the backend may use.'),
  ORATORIO_MODEL_ENDPOINT: {
    purpose:
      'Base URL of the model provider, e.g. https://api.openai.com/v1. Without it and without a key a demo without AI answers.',
    isSecret: false,
    default: '',
    given: { agent: 'ORATORIO_MODEL_ENDPOINT' },
  },
  ORATORIO_MODEL: {
    purpose: 'Name of the model.',
    isSecret: false,
    default: '',
    given: { agent: 'ORATORIO_MODEL' },
  },
  ORATORIO_MODEL_API_KEY: {
    purpose: 'Key of the model provider.',
    isSecret: true,
    default: '',
    given: { agent: 'ORATORIO_MODEL_API_KEY' },
  },
  ORATORIO_AGENT_TOKEN: {
    purpose: 'Opens the agent server for the backend.',
    isSecret: true,
    default: null,
    given: { agent: 'ORATORIO_AGENT_TOKEN', backend: 'Oratorio__AgentServer__AppServerToken' },
  },
  ORATORIO_DASHBOARD_PASSWORD: {
    purpose: 'Logs in to the Dashboard, with the name oratorio.',
    isSecret: true,
    default: null,
    given: { agent: 'ORATORIO_DASHBOARD_PASSWORD' },
  },
  ORATORIO_SERVICE_TOKEN: {
    purpose: 'Opens the API and the page of the backend.',
    isSecret: true,
    default: null,
    given: { backend: 'Oratorio__Server__ServiceToken' },
  },
} as const satisfies Record<string, Variable>;

/** Variables that only the overlay of the webhook reads. */
export const overlayVariables = {
  ORATORIO_GITHUB_WEBHOOK_SECRET: {
    purpose: "Secret of the GitHub App's webhook. Needed only with the webhook gateway.",
    isSecret: true,
    default: null,
    given: { backend: 'Oratorio__GitHub__WebhookSecret' },
  },
} as const satisfies Record<string, Variable>;

export type VariableName = keyof typeof variables | keyof typeof overlayVariables;

const everyVariable: ReadonlyMap<string, Variable> = new Map(Object.entries({ ...variables, ...overlayVariables }));

/** All of them with their names, those of the overlay last. */
export const allVariables = (): readonly (readonly [string, Variable])[] => [...everyVariable];

/** True when the value must not be shown. A name that is not ours counts as secret. */
export const isSecretVariable = (name: string): boolean => everyVariable.get(name)?.isSecret ?? true;

/** Reference to a variable in the composition. */
export function reference(name: VariableName): string {
  const value = everyVariable.get(name)?.default ?? null;
  return value === null ? `\${${name}:?set ${name} in .env}` : `\${${name}:-${value}}`;
}

/** Environment of a service, and nothing else: name inside of the container → reference. */
export function environmentOf(
  service: ServiceName,
  table: Readonly<Partial<Record<VariableName, Variable>>>,
): Record<string, string> {
  const names = Object.keys(table) as VariableName[];
  return Object.fromEntries(
    names.flatMap((name) => {
      const as = table[name]?.given[service];
      return as === undefined ? [] : [[as, reference(name)]];
    }),
  );
}

/**
 * The project of the stack in a directory. By its path, so that two stacks of one host do not collide; kept in `.env`, so that
 * one that is moved finds its volumes again.
 * @param directory absolute
 */
export const projectNameOf = (directory: string): string =>
  `${variables.COMPOSE_PROJECT_NAME.default}-${createHash('sha256').update(directory).digest('hex').slice(0, 6)}`;
