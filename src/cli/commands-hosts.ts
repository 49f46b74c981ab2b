/** Commands for other machines with their own Hub, and for conversations that move between them. */
import type { ArgumentSpec, CommandSpec, OptionSpec } from './command.ts';
import { json, noStart } from './shared-options.ts';

const host: ArgumentSpec = { name: 'host', completes: 'nothing' };
const to: OptionSpec = {
  ...{ name: 'to', value: 'place' },
  describe: 'Move it to this workspace: build:/srv/site, or a directory',
};

export const hostCommands: readonly CommandSpec[] = [
  {
    name: 'hosts',
    describe: [
      'List the other machines that this Hub reaches by ssh.',
      'Prints the state of each connection, the remote version, and the next step if you have to act. Agents continue while a machine is unreachable.',
    ],
    options: [noStart, json],
    examples: ['hosts', 'hosts --json'],
    load: async () => ({ run: (await import('./commands/hosts.ts')).list }),
  },
  {
    name: 'hosts add',
    describe: [
      'Add a machine with its own Hub.',
      'Lets ssh ask for the host key and a passphrase at a terminal, starts the remote Hub, and saves the host in your settings. With --install, a machine without Oratorio gets this version in the home of its user, without root. Later connections use only keys that need no prompt.',
    ],
    argument: { name: 'ssh', completes: 'nothing' },
    options: [
      { name: 'name', value: 'name', describe: 'Use this name; default: name of the machine' },
      { name: 'program', value: 'path', describe: 'Run this remote command; default: oratorio' },
      { name: 'install', describe: 'Install this version there if it is missing' },
      { name: 'from', value: 'address', describe: 'Read the release from this https address or directory' },
      { name: 'yes', describe: 'Install without asking' },
      noStart,
      json,
    ],
    examples: [
      'hosts add ssh://me@build-box',
      'hosts add ssh://me@build-box --install',
      'hosts add ssh://box --name build --program /opt/oratorio/bin/oratorio',
    ],
    load: async () => ({ run: (await import('./commands/hosts.ts')).add }),
  },
  {
    name: 'hosts remove',
    describe: ['Remove a machine from your settings.', 'Its Hub and its agents keep running.'],
    argument: host,
    options: [noStart, json],
    examples: ['hosts remove build'],
    load: async () => ({ run: (await import('./commands/hosts.ts')).remove }),
  },
  {
    name: 'hosts enable',
    describe: ['Connect a machine, or reconnect it after a refusal.'],
    argument: host,
    options: [noStart, json],
    examples: ['hosts enable build'],
    load: async () => ({ run: (await import('./commands/hosts.ts')).enable }),
  },
  {
    name: 'hosts disable',
    describe: ['End the connection to a machine and keep its settings.'],
    argument: host,
    options: [noStart, json],
    examples: ['hosts disable build'],
    load: async () => ({ run: (await import('./commands/hosts.ts')).disable }),
  },
  {
    name: 'hosts doctor',
    describe: ['Check each step to a machine: ssh, program, version.', 'Exit code 9 when a check fails.'],
    argument: host,
    options: [noStart, json],
    examples: ['hosts doctor build'],
    load: async () => ({ run: (await import('./commands/hosts.ts')).doctor }),
  },
  {
    name: 'move',
    describe: [
      'Move a conversation and its files to another machine.',
      'Sends the conversation and every file that changed since its start or differs from the commit, ignored files included. The target must be a workspace at the same commit, without changes of its own in these files. A move that would lose something is refused. It continues without this command.',
    ],
    argument: { name: 'thread', completes: 'nothing' },
    second: to,
    options: [
      to,
      { name: 'list', describe: 'List the moves' },
      { name: 'cancel', describe: 'Cancel the move of this conversation' },
      noStart,
      json,
    ],
    examples: ['move thread_20261125_abc123 build:/srv/site', 'move thread_20261125_abc123 ~/site', 'move --list'],
    load: async () => ({ run: (await import('./commands/move.ts')).run }),
  },
];
