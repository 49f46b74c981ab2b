/** Commands that show and answer the requests that wait for a user in all workspaces. */
import type { CommandSpec } from './command.ts';
import { json, noStart } from './shared-options.ts';

const request = { name: 'id', completes: 'nothing' } as const;

export const inboxCommands: readonly CommandSpec[] = [
  {
    name: 'inbox',
    describe: [
      'List the requests for your approval in all workspaces.',
      'Oldest first, with the whole command or path. With --watch: follows until Ctrl-C; with --json one event a line. With --history: the last decisions instead, newest first.',
    ],
    options: [
      { name: 'watch', describe: 'Follow until Ctrl-C' },
      { name: 'history', describe: 'Show past decisions with user, time and place' },
      { name: 'limit', value: 'number', describe: 'Show so many decisions; default: 20' },
      json,
      noStart,
    ],
    examples: ['inbox', 'inbox --watch', 'inbox --history --limit 50'],
    load: async () => ({ run: (await import('./commands/inbox.ts')).list }),
  },
  {
    name: 'inbox allow',
    describe: [
      'Allow one of them.',
      'The id is in the list; its beginning is enough while no other begins like it. The first answer counts, wherever it comes from.',
    ],
    argument: request,
    options: [
      {
        name: 'for',
        value: 'scope',
        choices: ['once', 'session', 'always', 'now'],
        describe: 'Allow once (default), for the conversation, always, or now',
      },
      json,
      noStart,
    ],
    examples: ['inbox allow approval_3f2a', 'inbox allow approval_3f2a --for session'],
    load: async () => ({ run: (await import('./commands/inbox.ts')).allow }),
  },
  {
    name: 'inbox answer',
    describe: [
      'Answer a question of an agent or MCP server.',
      'Asks for each field at a terminal. With --content: takes the answers as JSON by field.',
    ],
    argument: request,
    options: [{ name: 'content', value: 'json', describe: 'Give the answers as JSON' }, json, noStart],
    examples: ['inbox answer question_3f2a', `inbox answer question_3f2a --content '{"Library":"zod"}'`],
    load: async () => ({ run: (await import('./commands/inbox.ts')).answerQuestion }),
  },
  {
    name: 'inbox decline',
    describe: ['Decline one of them.', 'With --end-turn the agent stops as well.'],
    argument: request,
    options: [{ name: 'end-turn', describe: 'End the turn, too' }, json, noStart],
    examples: ['inbox decline approval_3f2a', 'inbox decline approval_3f2a --end-turn'],
    load: async () => ({ run: (await import('./commands/inbox.ts')).decline }),
  },
];
