/** The command that moves conversations between machines. */
import type { CommandSpec } from './command.ts';
import { json, noStart } from './shared-options.ts';

const to = { name: 'to', value: 'place', describe: 'Move it to this workspace: build:/srv/site, or a directory' };

export const moveCommands: readonly CommandSpec[] = [
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
