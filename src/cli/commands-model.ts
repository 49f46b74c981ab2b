/** Commands that connect a model provider and choose the model. */
import { knownProviderNames } from '../protocol/index.ts';
import type { CommandSpec } from './command.ts';
import { effort, inWorkspace, json } from './shared-options.ts';

export const modelCommands: readonly CommandSpec[] = [
  {
    name: 'login',
    describe: [
      'Connect a model provider.',
      'Asks for provider, key and model, sends one request, and writes your config.json (mode 0600). A key is typed hidden, or comes from a file, the environment or a command.',
      `Providers: ${knownProviderNames.join(', ')}.`,
    ],
    argument: { name: 'provider', choices: knownProviderNames, completes: 'choices' },
    options: [
      { name: 'api-key-file', value: 'file', describe: 'Copy the key from this file; -: standard input' },
      { name: 'api-key-env', value: 'name', describe: 'Read the key from this environment variable at each start' },
      { name: 'api-key-command', value: 'line', describe: 'Run this program at each start; it prints the key' },
      { name: 'end-point', value: 'url', describe: 'Use this base URL instead of the usual one' },
      { name: 'model', value: 'model', describe: 'Use this model' },
      { name: 'no-test', describe: 'Send no request' },
      { name: 'agent', value: 'name', describe: 'Connect this external agent instead' },
      { name: 'method', value: 'id', describe: 'Log in to the agent by this method' },
      json,
    ],
    examples: [
      'login',
      'login anthropic',
      'login --agent codex',
      'login openai --api-key-env OPENAI_API_KEY --model gpt-6-sol',
      'login other --end-point http://127.0.0.1:9000/v1 --api-key-file key.txt --model my-model',
    ],
    load: () => import('./commands/login.ts'),
  },
  {
    name: 'model',
    describe: [
      'Show which model is in force, and why.',
      'With provider, key source, window, price and budget; keys are never printed.',
    ],
    options: [inWorkspace, json],
    examples: ['model', 'model --workspace ~/projects/site --json'],
    load: async () => ({ run: (await import('./commands/model.ts')).show }),
  },
  {
    name: 'model list',
    describe: [
      'List the models of your providers.',
      'With --refresh, windows and prices are first read from https://models.dev into models.json of your home.',
    ],
    options: [
      inWorkspace,
      { name: 'refresh', describe: 'Read windows and prices again' },
      { name: 'from', value: 'url', describe: 'Read them from this address' },
      json,
    ],
    examples: ['model list', 'model list --refresh'],
    load: async () => ({ run: (await import('./commands/model.ts')).list }),
  },
  {
    name: 'model set',
    describe: ['Change the model in your config.json.', 'NAME/MODEL is a model of one of your Providers.'],
    argument: { name: 'model', completes: 'nothing' },
    options: [effort, json],
    examples: ['model set gpt-6-sol', 'model set claude-sonnet-5-5 --effort high'],
    load: async () => ({ run: (await import('./commands/model.ts')).set }),
  },
  {
    name: 'model test',
    describe: ['Send one request to the model in force.', 'A failure says what to do about it.'],
    options: [inWorkspace, json],
    examples: ['model test'],
    load: async () => ({ run: (await import('./commands/model.ts')).test }),
  },
];
