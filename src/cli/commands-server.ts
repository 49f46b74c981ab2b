/** The commands that set up and look after a review server. */
import type { CommandSpec, OptionSpec } from './command.ts';
import { serviceNames } from './server/services.ts';

const json: OptionSpec = { name: 'json', describe: 'Print JSON for programs; an error is printed as {"error":{…}}' };
const dir: OptionSpec = { name: 'dir', value: 'dir', describe: 'The stack; default: the current directory' };
const yes: OptionSpec = { name: 'yes', alias: 'y', describe: 'Ask nothing; what is missing is an error' };
const dryRun: OptionSpec = { name: 'dry-run', describe: 'Print what would be done, and do nothing' };
const service: OptionSpec = {
  name: 'service',
  value: 'service',
  choices: serviceNames,
  repeats: true,
  describe: 'Only this one; may be given more than once',
};
const changes: readonly OptionSpec[] = [dir, yes, dryRun, json];
const certificates: OptionSpec = {
  name: 'certificates',
  value: 'issuer',
  choices: ['production', 'staging', 'internal'],
  describe: 'Of whom the gateway gets its certificate: production; staging for a trial; internal of itself, for tests',
};

export const serverCommands: readonly CommandSpec[] = [
  {
    name: 'server init',
    describe: [
      'Set up a review server on this Linux host.',
      'Makes a directory with a composition of the review backend, its agent server and, if you want, a gateway for webhooks; clones the repositories and starts it. Asks for what is not given.',
      'Secrets come from a prompt, a file or the environment (ORATORIO_MODEL_API_KEY), never from an option. Run again after a failure it goes on where it stopped.',
    ],
    options: [
      { ...dir, describe: 'Where to put it; default: ./oratorio-review' },
      {
        name: 'repo',
        value: 'owner/name',
        repeats: true,
        describe: 'Repository to review; may be given more than once',
      },
      {
        name: 'clone-url',
        value: 'owner/name=url',
        repeats: true,
        describe: 'Where a repository is cloned from; default: https if git has credentials for it, else ssh',
      },
      {
        name: 'provider',
        value: 'provider',
        choices: ['openai', 'anthropic', 'openrouter', 'deepseek', 'mistral', 'gemini', 'custom', 'demo'],
        describe: 'Model provider; demo answers without one, custom needs --endpoint',
      },
      { name: 'endpoint', value: 'url', describe: "Base URL of the provider's OpenAI-compatible API" },
      { name: 'model', value: 'model', describe: 'Name of the model' },
      { name: 'api-key-file', value: 'file', describe: 'File with the key of the provider; - reads standard input' },
      { name: 'github-app-id', value: 'id', describe: 'Id of the GitHub App' },
      {
        name: 'github-app-private-key-file',
        value: 'file',
        describe: "The App's private key; it is copied into secrets/",
      },
      {
        name: 'github-app-private-key-path',
        value: 'path',
        describe: 'Where the containers find the key that you put into secrets/; default: /secrets/github-app.pem',
      },
      {
        name: 'github-installation',
        value: 'owner=id',
        repeats: true,
        describe: "Installation of the App for an owner's repositories; default: GitHub is asked",
      },
      { name: 'github-url', value: 'url', describe: 'API of GitHub Enterprise, e.g. https://HOST/api/v3' },
      { name: 'no-auto-review', describe: 'Pull requests are reviewed on request only' },
      { name: 'no-github-writes', describe: 'The App only reads: reviews stay drafts' },
      {
        name: 'webhook-public-host',
        value: 'host',
        describe: 'Also set up the gateway: public DNS name or IP address',
      },
      { name: 'webhook-acme-email', value: 'email', describe: 'Told to the certificate authority' },
      { name: 'webhook-secret-file', value: 'file', describe: 'Secret of the webhook; default: a new one' },
      certificates,
      { name: 'image', value: 'image', describe: 'Image of backend and agent server' },
      { name: 'gateway-image', value: 'image', describe: 'Image of the gateway' },
      { name: 'build', value: 'dir', describe: 'Build the image from this checkout of Oratorio' },
      { name: 'base-image', value: 'image', describe: 'Image that --build begins with; default: Node of the registry' },
      {
        name: 'port',
        value: 'port',
        describe: 'Loopback port of the backend; default: 5087, or the next that is free',
      },
      { name: 'offline', describe: 'Do not ask GitHub whether App, key and installations fit' },
      { name: 'no-start', describe: 'Write everything, start nothing' },
      yes,
      dryRun,
      json,
    ],
    examples: [
      'server init',
      'server init --repo owner/name --github-app-id 12345 --github-app-private-key-file app.pem --webhook-public-host reviews.your-company.com',
      'server init --yes --repo owner/name --provider openai --model gpt-4o --api-key-file key --github-app-id 12345 --github-app-private-key-file app.pem --json',
    ],
    load: () => import('./commands/server-init.ts'),
  },
  {
    name: 'server add-repo',
    describe: [
      'Add a repository to a review server.',
      'Clones it into the workspace, adds it to the configuration and restarts the backend.',
    ],
    argument: { name: 'github:owner/name', completes: 'nothing' },
    options: [
      {
        name: 'clone-url',
        value: 'url',
        describe: 'Where to clone from; default: https if git has credentials for it, else ssh',
      },
      { name: 'no-auto-review', describe: 'Its pull requests are reviewed on request only' },
      { name: 'no-restart', describe: 'The backend takes it up at its next start' },
      ...changes,
    ],
    examples: [
      'server add-repo github:owner/name',
      'server add-repo owner/name --dir /srv/oratorio-review --no-restart',
    ],
    load: () => import('./commands/server-add-repo.ts'),
  },
  {
    name: 'server webhook enable',
    describe: [
      'Let GitHub deliver webhooks to a review server.',
      'Adds a gateway on ports 80 and 443 that passes on one address and nothing else. A new secret is printed once. What fails is taken back.',
    ],
    options: [
      { name: 'public-host', value: 'host', describe: 'Public DNS name or IP address of this machine' },
      { name: 'acme-email', value: 'email', describe: 'Told to the certificate authority' },
      {
        name: 'secret-file',
        value: 'file',
        describe: 'File with the secret, one line; - reads standard input; default: the one there is, or a new one',
      },
      { name: 'secret-out', value: 'file', describe: 'Write a new secret into this file instead of printing it' },
      certificates,
      ...changes,
    ],
    examples: [
      'server webhook enable --public-host reviews.your-company.com',
      'server webhook enable --public-host 8.8.4.4 --yes --secret-out secret',
    ],
    load: () => import('./commands/server-webhook-enable.ts'),
  },
  {
    name: 'server webhook status',
    describe: ['Show whether webhooks reach a review server, and where.'],
    options: [dir, json],
    examples: ['server webhook status', 'server webhook status --json'],
    load: () => import('./commands/server-webhook-status.ts'),
  },
  {
    name: 'server webhook disable',
    describe: ['Take the gateway away.', 'Keeps the secret, the certificates, the backend and the agent server.'],
    options: changes,
    examples: ['server webhook disable', 'server webhook disable --dry-run'],
    load: () => import('./commands/server-webhook-disable.ts'),
  },
  {
    name: 'server doctor',
    describe: [
      'Check everything a review server stands on, and say what to do.',
      'Reads only, also at GitHub. Exit code 9 when something fails.',
    ],
    options: [
      dir,
      {
        name: 'only',
        value: 'check',
        repeats: true,
        describe: 'Only this check, or checks that begin with it; may be given more than once',
      },
      { name: 'offline', describe: 'Ask nobody outside of this machine' },
      json,
    ],
    examples: ['server doctor', 'server doctor --only ingress --json', 'server doctor --offline'],
    load: () => import('./commands/server-doctor.ts'),
  },
  {
    name: 'server status',
    describe: [
      'Show the containers of a review server, its backend and its last changes.',
      'Exit code 9 when not everything runs.',
    ],
    options: [dir, json],
    examples: ['server status', 'server status --json'],
    load: () => import('./commands/server-status.ts'),
  },
  {
    name: 'server logs',
    describe: ['Print what the containers of a review server have logged.', 'Secrets of the stack are taken out.'],
    options: [
      dir,
      { name: 'follow', alias: 'f', describe: 'Go on until Ctrl-C' },
      { name: 'tail', value: 'lines', describe: 'How many lines of each; default: 200' },
      { name: 'since', value: 'time', describe: 'Only what is newer, e.g. 10m or 2026-12-24T18:00' },
      { name: 'timestamps', describe: 'With the time of each line' },
      service,
      json,
    ],
    examples: ['server logs', 'server logs -f --service backend --since 10m'],
    load: () => import('./commands/server-logs.ts'),
  },
  {
    name: 'server restart',
    describe: ['Make the containers anew, so that changed settings and secrets hold, and wait until they are healthy.'],
    options: [service, ...changes],
    examples: ['server restart', 'server restart --service backend'],
    load: () => import('./commands/server-restart.ts'),
  },
  {
    name: 'server upgrade',
    describe: [
      'Bring a review server to another version, and back if that is not healthy.',
      'Pins the images by their digests, saves the state of the backend, makes the containers anew and waits for them.',
    ],
    options: [
      {
        name: 'image',
        value: 'image',
        describe: 'Image of backend and agent server; default: the one it was set up with',
      },
      { name: 'gateway-image', value: 'image', describe: 'Image of the gateway' },
      { name: 'build', value: 'dir', describe: 'Build the image from this checkout of Oratorio' },
      { name: 'base-image', value: 'image', describe: 'Image that --build begins with; default: Node of the registry' },
      { name: 'check', describe: 'Only say whether there is something newer' },
      ...changes,
    ],
    examples: ['server upgrade --check', 'server upgrade', 'server upgrade --image oratorio:0.2.0'],
    load: () => import('./commands/server-upgrade.ts'),
  },
];
