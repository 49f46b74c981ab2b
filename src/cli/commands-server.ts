/** Commands that set up and maintain a review server. */
import type { CommandSpec, OptionSpec } from './command.ts';
import { serviceNames } from './server/services.ts';
import { json } from './shared-options.ts';

const dir: OptionSpec = { name: 'dir', value: 'dir', describe: 'Use this stack directory; default: the current one' };
const yes: OptionSpec = { name: 'yes', alias: 'y', describe: 'Fail for missing options instead of prompting' };
const dryRun: OptionSpec = { name: 'dry-run', describe: 'Print the plan without carrying it out' };
const service: OptionSpec = {
  name: 'service',
  value: 'service',
  choices: serviceNames,
  repeats: true,
  describe: 'Limit it to this service; repeatable',
};
const changes: readonly OptionSpec[] = [dir, yes, dryRun, json];
const certificates: OptionSpec = {
  name: 'certificates',
  value: 'issuer',
  choices: ['production', 'staging', 'internal'],
  describe: 'Choose the certificate issuer; staging and internal are for tests',
};

export const serverCommands: readonly CommandSpec[] = [
  {
    name: 'server init',
    describe: [
      'Set up a review server on this Linux host.',
      'Creates a directory with a composition of review backend, agent server and optionally a gateway for webhooks, clones the repositories and starts it. Prompts for missing options.',
      'Secrets come from a prompt, a file or the environment (ORATORIO_MODEL_API_KEY), never from an option. After a failure run it again: it resumes where it stopped.',
    ],
    options: [
      { ...dir, describe: 'Create it in this directory; default: ./oratorio-review' },
      {
        name: 'repo',
        value: 'owner/name',
        repeats: true,
        describe: 'Review this repository; repeatable',
      },
      {
        name: 'clone-url',
        value: 'owner/name=url',
        repeats: true,
        describe: 'Clone a repository from this address; default: https or ssh',
      },
      {
        name: 'provider',
        value: 'provider',
        choices: ['openai', 'anthropic', 'openrouter', 'deepseek', 'mistral', 'gemini', 'custom', 'demo'],
        describe: 'Use this model provider; custom needs --endpoint',
      },
      { name: 'endpoint', value: 'url', describe: "Use this base URL of the provider's OpenAI-compatible API" },
      { name: 'model', value: 'model', describe: 'Use this model' },
      { name: 'api-key-file', value: 'file', describe: 'Read the key from this file; -: standard input' },
      { name: 'github-app-id', value: 'id', describe: 'Use the GitHub App with this id' },
      {
        name: 'github-app-private-key-file',
        value: 'file',
        describe: "Copy the App's private key into secrets/",
      },
      {
        name: 'github-app-private-key-path',
        value: 'path',
        describe: 'Read the key here in containers; default: /secrets/github-app.pem',
      },
      {
        name: 'github-installation',
        value: 'owner=id',
        repeats: true,
        describe: 'Use this installation for an owner; default: ask GitHub',
      },
      { name: 'github-url', value: 'url', describe: 'Use this GitHub Enterprise API, e.g. https://HOST/api/v3' },
      { name: 'no-auto-review', describe: 'Review pull requests on request only' },
      { name: 'no-github-writes', describe: 'Keep reviews as drafts, never write to GitHub' },
      {
        name: 'webhook-public-host',
        value: 'host',
        describe: 'Set up the gateway for this DNS name or IP',
      },
      { name: 'webhook-acme-email', value: 'email', describe: 'Send this address to the certificate authority' },
      { name: 'webhook-secret-file', value: 'file', describe: 'Read the webhook secret here; default: generate one' },
      certificates,
      { name: 'image', value: 'image', describe: 'Use this image for backend and agent server' },
      { name: 'gateway-image', value: 'image', describe: 'Use this image for the gateway' },
      { name: 'build', value: 'dir', describe: 'Build the image from this checkout of Oratorio' },
      { name: 'base-image', value: 'image', describe: 'Start --build from this image; default: official Node' },
      {
        name: 'port',
        value: 'port',
        describe: 'Use this loopback port; default: 5087 or the next free',
      },
      { name: 'offline', describe: 'Skip checking App, key and installations at GitHub' },
      { name: 'no-start', describe: 'Write all files without starting containers' },
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
        describe: 'Clone from this address; default: https or ssh',
      },
      { name: 'no-auto-review', describe: 'Review its pull requests on request only' },
      { name: 'no-restart', describe: 'Leave the restart of the backend to you' },
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
      'Adds a gateway on ports 80 and 443 that forwards one address only. A new secret is printed once. A failure undoes all changes.',
    ],
    options: [
      { name: 'public-host', value: 'host', describe: 'Use this public DNS name or IP address' },
      { name: 'acme-email', value: 'email', describe: 'Send this address to the certificate authority' },
      {
        name: 'secret-file',
        value: 'file',
        describe: 'Read the secret here; -: standard input; default: existing or new',
      },
      { name: 'secret-out', value: 'file', describe: 'Write a new secret into this file, print nothing' },
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
    describe: ['Show whether webhooks reach a review server.'],
    options: [dir, json],
    examples: ['server webhook status', 'server webhook status --json'],
    load: () => import('./commands/server-webhook-status.ts'),
  },
  {
    name: 'server webhook disable',
    describe: ['Remove the gateway.', 'Secret, certificates, backend and agent server stay.'],
    options: changes,
    examples: ['server webhook disable', 'server webhook disable --dry-run'],
    load: () => import('./commands/server-webhook-disable.ts'),
  },
  {
    name: 'server doctor',
    describe: [
      'Check a review server and print how to fix it.',
      'Changes nothing, neither here nor at GitHub. Exit code 9 when a check fails.',
    ],
    options: [
      dir,
      {
        name: 'only',
        value: 'check',
        repeats: true,
        describe: 'Run this check or those beginning with it; repeatable',
      },
      { name: 'offline', describe: 'Skip checks that need the network' },
      json,
    ],
    examples: ['server doctor', 'server doctor --only ingress --json', 'server doctor --offline'],
    load: () => import('./commands/server-doctor.ts'),
  },
  {
    name: 'server status',
    describe: ['Show containers, backend and last changes of a review server.', 'Exit code 9 unless everything runs.'],
    options: [dir, json],
    examples: ['server status', 'server status --json'],
    load: () => import('./commands/server-status.ts'),
  },
  {
    name: 'server logs',
    describe: ['Print the logs of the containers of a review server.', 'Secrets of the stack are removed.'],
    options: [
      dir,
      { name: 'follow', alias: 'f', describe: 'Follow the logs until Ctrl-C' },
      { name: 'tail', value: 'lines', describe: 'Print this many lines of each; default: 200' },
      { name: 'since', value: 'time', describe: 'Print newer lines only, e.g. 10m or 2026-12-24T18:00' },
      { name: 'timestamps', describe: 'Print the time of each line' },
      service,
      json,
    ],
    examples: ['server logs', 'server logs -f --service backend --since 10m'],
    load: () => import('./commands/server-logs.ts'),
  },
  {
    name: 'server restart',
    describe: ['Recreate the containers and wait until they are healthy.', 'Changed settings and secrets take effect.'],
    options: [service, ...changes],
    examples: ['server restart', 'server restart --service backend'],
    load: () => import('./commands/server-restart.ts'),
  },
  {
    name: 'server upgrade',
    describe: [
      'Upgrade a review server, and undo an unhealthy upgrade.',
      'Pins the images by their digests, saves the state of the backend, recreates the containers and waits for them.',
    ],
    options: [
      {
        name: 'image',
        value: 'image',
        describe: 'Use this image; default: the one of the setup',
      },
      { name: 'gateway-image', value: 'image', describe: 'Use this image for the gateway' },
      { name: 'build', value: 'dir', describe: 'Build the image from this checkout of Oratorio' },
      { name: 'base-image', value: 'image', describe: 'Start --build from this image; default: official Node' },
      { name: 'check', describe: 'Check for a newer version without installing it' },
      ...changes,
    ],
    examples: ['server upgrade --check', 'server upgrade', 'server upgrade --image oratorio:0.2.0'],
    load: () => import('./commands/server-upgrade.ts'),
  },
];
