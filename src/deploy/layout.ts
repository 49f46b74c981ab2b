import { join, resolve } from 'node:path';

/** Where everything of a stack is (specification §2.9), absolute. */
export interface StackLayout {
  readonly directory: string;
  readonly compose: string;
  readonly overlay: string;
  readonly caddyfile: string;
  readonly env: string;
  readonly config: string;
  readonly gitignore: string;
  readonly workspace: string;
  /** Directory of the agent server. Outside of the workspace, which holds repositories of others. */
  readonly agent: string;
  /** Home of the agent server: state of the workspace, tokens, trust. */
  readonly agentHome: string;
  /** Settings of the agent server: the user's layer, read-only inside of the container. */
  readonly agentConfig: string;
  /** Where stacks of version 0.1 had these settings. */
  readonly oldAgentConfig: string;
  readonly secrets: string;
  readonly privateKey: string;
  /** State of this tool: journal, lock, backups, record of the running images. */
  readonly state: string;
  readonly journal: string;
  readonly lock: string;
  readonly backups: string;
  readonly images: string;
  /** Secrets of the last valid versions of `.env`, which no output may hold. */
  readonly knownSecrets: string;
}

/** Hint for a missing file of a stack: `init` completes only its own interrupted run. */
export const missingFileHint =
  'If oratorio server init was interrupted, run it again. Otherwise restore the file from a backup.';

/** Paths relative to the stack, as plans and journals name them. */
export const stackFiles = {
  compose: 'docker-compose.yml',
  overlay: 'docker-compose.webhook.yml',
  caddyfile: 'Caddyfile',
  env: '.env',
  config: 'oratorio.config.json',
  gitignore: '.gitignore',
  workspace: 'workspace',
  agent: 'agent',
  agentHome: 'agent/home',
  agentConfig: 'agent/config.json',
  oldAgentConfig: 'workspace/.oratorio/config.json',
  secrets: 'secrets',
  privateKey: 'secrets/github-app.pem',
  state: '.server',
  journal: '.server/journal.jsonl',
  lock: '.server/lock',
  backups: '.server/backup',
  images: '.server/images.json',
  knownSecrets: '.server/known-secrets.json',
} as const satisfies Record<Exclude<keyof StackLayout, 'directory'>, string>;

export function layoutOf(directory: string): StackLayout {
  const root = resolve(directory);
  const at = (path: string): string => join(root, path);
  return {
    directory: root,
    compose: at(stackFiles.compose),
    overlay: at(stackFiles.overlay),
    caddyfile: at(stackFiles.caddyfile),
    env: at(stackFiles.env),
    config: at(stackFiles.config),
    gitignore: at(stackFiles.gitignore),
    workspace: at(stackFiles.workspace),
    agent: at(stackFiles.agent),
    agentHome: at(stackFiles.agentHome),
    agentConfig: at(stackFiles.agentConfig),
    oldAgentConfig: at(stackFiles.oldAgentConfig),
    secrets: at(stackFiles.secrets),
    privateKey: at(stackFiles.privateKey),
    state: at(stackFiles.state),
    journal: at(stackFiles.journal),
    lock: at(stackFiles.lock),
    backups: at(stackFiles.backups),
    images: at(stackFiles.images),
    knownSecrets: at(stackFiles.knownSecrets),
  };
}
