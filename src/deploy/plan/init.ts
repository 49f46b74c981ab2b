import { defaults } from '../defaults.ts';
import {
  agentConfig,
  type ConfigAnswers,
  composeFile,
  gitignore,
  newBackendConfig,
  newEnv,
  overlayFile,
  projectNameOf,
  type Repository,
} from '../files/index.ts';
import { type StackUser, stackFiles } from '../stack/index.ts';
import type { Plan, ServiceName, Step } from '../stack-plan.ts';
import { agentHomeSteps } from './agent-home.ts';
import { type WebhookSecret, webhookSecret } from './enable.ts';
import { awaitHealthy, phase, portChecks, type StackPorts, start, writeEnv, writeOurs, writeTheirs } from './steps.ts';

export interface InitFacts {
  readonly directory: string;
  readonly repositories: readonly {
    readonly repository: Repository;
    readonly url: string;
    readonly autoReview: boolean;
  }[];
  readonly github: Omit<ConfigAnswers, 'repositories'>;
  /** The App's private key, to be written into `secrets/`; null: it is there, or will be put there. */
  readonly privateKey: string | null;
  readonly model: { readonly endPoint: string; readonly name: string; readonly apiKey: string };
  /** New secrets, or those of an earlier attempt. */
  readonly secrets: { readonly agentToken: string; readonly dashboardPassword: string; readonly serviceToken: string };
  readonly ports: StackPorts;
  readonly images: { readonly stack: string; readonly gateway: string };
  /** User of the containers. */
  readonly user: StackUser;
  readonly isSelinux: boolean;
  readonly starts: boolean;
  /** A gateway whose files are written together with the stack; null: none, or it is enabled after the start. */
  readonly gateway: { readonly caddyfile: string; readonly secret: WebhookSecret } | null;
  /** Content of `.server/images.json`. */
  readonly record: string;
  readonly notes: readonly string[];
}

const services: readonly ServiceName[] = ['agent', 'backend'];

/** A new stack (specification §2.9 and §4.4). Run again after an interruption, it resumes. */
export function planInit(facts: InitFacts): Plan {
  const { directory, repositories, ports, starts, notes } = facts;
  return {
    command: 'init',
    directory,
    onFailure: 'keep',
    reveals: facts.gateway?.secret.isNew ? [webhookSecret] : [],
    notes,
    phases: [
      phase('checkouts', checkoutTitle(repositories.map(({ repository }) => repository.fullName)), checkouts(facts)),
      phase('files', 'Writing the stack', files(facts)),
      ...(starts
        ? [
            // Not before: services of an earlier attempt may hold them, which only its files show.
            phase('ports', `Checking ports ${ports.backend}, ${ports.agent} and ${ports.dashboard}`, portChecks(ports)),
            phase('validate', 'Checking the composition', [{ do: 'checkComposition' }]),
            phase('images', 'Checking the image', [{ do: 'pullImages', services }]),
            phase('start', 'Starting agent server and backend', [start(services, false)]),
            phase('health', 'Waiting until everything is healthy', [awaitHealthy(services)]),
          ]
        : []),
    ],
  };
}

const checkoutTitle = (names: readonly string[]): string =>
  names.length === 1 ? `Cloning ${names[0]}` : `Cloning ${names.length} repositories`;

function checkouts({ repositories }: InitFacts): readonly Step[] {
  const { workspace } = defaults.directoryModes;
  return [
    { do: 'makeDirectory', path: stackFiles.workspace, mode: workspace },
    ...repositories.map(
      ({ repository, url }): Step => ({
        do: 'clone',
        repository: repository.fullName,
        url,
        path: `${stackFiles.workspace}/${repository.directory}`,
      }),
    ),
  ];
}

function files(facts: InitFacts): readonly Step[] {
  const { directory, github, repositories, privateKey, user, isSelinux, record, gateway } = facts;
  const { workspace, secrets } = defaults.directoryModes;
  const config = newBackendConfig({
    ...github,
    repositories: repositories.map(({ repository, autoReview }) => ({
      repository: repository.fullName,
      workspacePath: repository.workspacePath,
      autoReview,
    })),
  });
  const give = (path: string): readonly Step[] =>
    user.isOther ? [{ do: 'giveTo', path, uid: user.uid, gid: user.gid }] : [];
  return [
    { do: 'makeDirectory', path: stackFiles.secrets, mode: secrets },
    ...(privateKey === null ? [] : [secretFile(stackFiles.privateKey, privateKey)]),
    ...give(stackFiles.secrets),
    writeEnv(envOf(facts, projectNameOf(directory))),
    writeTheirs(stackFiles.config, config),
    ...give(stackFiles.config),
    ...agentHomeSteps(agentConfig(), user),
    { do: 'makeDirectory', path: `${stackFiles.workspace}/.oratorio`, mode: workspace },
    ...give(stackFiles.workspace),
    writeOurs(stackFiles.gitignore, gitignore()),
    writeOurs(stackFiles.compose, composeFile({ isSelinux })),
    ...(gateway === null
      ? []
      : [
          writeOurs(stackFiles.caddyfile, gateway.caddyfile),
          writeOurs(stackFiles.overlay, overlayFile({ isSelinux })),
        ]),
    { do: 'writeFile', path: stackFiles.images, mode: 0o600, content: record, isSecret: false, owner: 'theirs' },
  ];
}

const secretFile = (path: string, content: string): Step => ({
  do: 'writeFile',
  path,
  mode: defaults.fileModes.secret,
  content,
  isSecret: true,
  owner: 'theirs',
});

function envOf({ user, images, ports, model, secrets, gateway }: InitFacts, project: string): string {
  return newEnv({
    COMPOSE_PROJECT_NAME: project,
    ORATORIO_UID: String(user.uid),
    ORATORIO_GID: String(user.gid),
    ORATORIO_IMAGE: images.stack,
    ORATORIO_GATEWAY_IMAGE: images.gateway,
    ORATORIO_BACKEND_PORT: String(ports.backend),
    ORATORIO_AGENT_PORT: String(ports.agent),
    ORATORIO_DASHBOARD_PORT: String(ports.dashboard),
    ORATORIO_MODEL_ENDPOINT: model.endPoint,
    ORATORIO_MODEL: model.name,
    ORATORIO_MODEL_API_KEY: model.apiKey,
    ORATORIO_AGENT_TOKEN: secrets.agentToken,
    ORATORIO_DASHBOARD_PASSWORD: secrets.dashboardPassword,
    ORATORIO_SERVICE_TOKEN: secrets.serviceToken,
    ...(gateway !== null && { [webhookSecret]: gateway.secret.value }),
  });
}
