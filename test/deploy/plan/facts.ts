/** Facts of a made-up stack, with secrets that no view of a plan may show. */
import { changeEnv, newBackendConfig, repositoryOf } from '../../../src/deploy/files/index.ts';
import type { EnableFacts } from '../../../src/deploy/plan/enable.ts';
import type { InitFacts } from '../../../src/deploy/plan/init.ts';
import type { UpgradeFacts } from '../../../src/deploy/plan/upgrade.ts';
import type { Plan, Step } from '../../../src/deploy/stack-plan.ts';

export const directory = '/srv/review';
export const secrets = {
  apiKey: 'canary-model-key-0123456789',
  privateKey: 'canary-private-key',
  agentToken: 'canary-agent-token-0123456789',
  dashboardPassword: 'canary-dashboard-0123456789',
  serviceToken: 'canary-service-token-0123456789',
  webhook: 'canary-webhook-secret-0123456789',
} as const;

export const app = repositoryOf('github:octo/app');
export const lib = repositoryOf('github:octo/lib');

export const initFacts: InitFacts = {
  directory,
  repositories: [{ repository: app, url: 'https://github.com/octo/app.git', autoReview: true }],
  github: { appId: '7', writesEnabled: true, installations: [], privateKeyPath: '/secrets/github-app.pem' },
  privateKey: secrets.privateKey,
  model: { endPoint: 'https://models.oratorio.dev/v1', name: 'm', apiKey: secrets.apiKey },
  secrets,
  ports: { backend: 5087, agent: 19_100, dashboard: 18_080 },
  images: { stack: 'oratorio@sha256:1', gateway: 'caddy@sha256:2' },
  user: { uid: 1000, gid: 1000, isOther: false },
  isSelinux: false,
  starts: true,
  gateway: null,
  record: '{}\n',
  notes: ['Something to know.'],
};

export const env = changeEnv('', { COMPOSE_PROJECT_NAME: 'review', ORATORIO_SERVICE_TOKEN: secrets.serviceToken });

export const enableFacts: EnableFacts = {
  directory,
  env,
  isSelinux: false,
  caddyfile: 'hooks.oratorio.dev {}\n',
  secret: { value: secrets.webhook, isNew: true, isChanged: false },
  gatewayImage: 'caddy@sha256:2',
  notes: [],
};

export const upgradeFacts: UpgradeFacts = {
  directory,
  env,
  isSelinux: false,
  hasIngress: true,
  images: { stack: 'oratorio@sha256:3', gateway: 'caddy@sha256:4' },
  record: '{}\n',
  ports: { backend: 5087, agent: 19_100, dashboard: 18_080 },
  move: null,
  notes: [],
};

export const config = newBackendConfig({
  appId: '7',
  writesEnabled: true,
  repositories: [{ repository: app.fullName, workspacePath: app.workspacePath, autoReview: true }],
});

/** `phase: step step`, with the path that is written, removed or cloned. */
export const outline = ({ phases }: Plan): string[] =>
  phases.map(({ name, steps }) => `${name}:${steps.map((step) => ` ${nameOf(step)}`).join('')}`);

function nameOf(step: Step): string {
  if ('path' in step) return `${step.do}(${step.path})`;
  if ('services' in step) return `${step.do}(${step.services.join(',')})`;
  return step.do;
}

/** Content that a plan writes into a file. */
export function contentOf({ phases }: Plan, path: string): string | undefined {
  for (const step of phases.flatMap(({ steps }) => steps))
    if (step.do === 'writeFile' && step.path === path) return step.content;
  return undefined;
}
