/** Commands for files that turns have changed. */
import type { CommandSpec, OptionSpec } from './command.ts';
import { inWorkspace, json, noStart, yes } from './shared-options.ts';

const ofThread: OptionSpec = {
  name: 'thread',
  value: 'id',
  describe: 'Use this conversation; default: the last one in this directory',
};

export const fileCommands: readonly CommandSpec[] = [
  {
    name: 'undo',
    describe: [
      'Take back turns of a conversation, with their files.',
      'Takes back the changes that the last turns made in the workspace by edits, commands and sub-agents. Your own later changes stay; where they concern the same files, nothing is restored and the files are listed. The output names a restore id, which takes the undo back.',
    ],
    options: [
      inWorkspace,
      ofThread,
      { name: 'turns', value: 'count', describe: 'Take back this many turns; default: 1' },
      { name: 'restore', value: 'id', describe: 'Take back this restore, or files since this turn' },
      { name: 'path', value: 'path', describe: 'Restore this file or directory only; keep the conversation' },
      { name: 'force', describe: 'Overwrite your own later changes of these files' },
      noStart,
      json,
    ],
    examples: [
      ...['undo', 'undo --turns 3', 'undo --workspace ~/projects/site --force', 'undo --restore restore_2'],
      'undo --path src/parser.ts',
    ],
    load: async () => ({ run: (await import('./commands/undo.ts')).run }),
  },
  {
    name: 'diff',
    describe: [
      'Show the changes of a conversation in the workspace.',
      'Without --turn: all its turns that were not taken back.',
    ],
    options: [
      inWorkspace,
      ofThread,
      { name: 'turn', value: 'id', describe: 'Show this turn only' },
      { name: 'summary', describe: 'List the files without their changes' },
      noStart,
      json,
    ],
    examples: ['diff', 'diff --summary', 'diff --turn turn_003'],
    load: async () => ({ run: (await import('./commands/diff.ts')).run }),
  },
  {
    name: 'threads export',
    describe: [
      'Print a whole conversation as Markdown.',
      'Prints the same text as *Copy as Markdown* on the page: messages, answers, and the number of tool calls between them. With --json: all items.',
    ],
    options: [inWorkspace, ofThread, noStart, json],
    examples: ['threads export > conversation.md', 'threads export --thread thread_20260101_a1b2c3 --json'],
    load: () => import('./commands/threads-export.ts'),
  },
  {
    name: 'fork',
    describe: [
      'Copy a conversation, and with --worktree its files.',
      'The copy continues from the same turns. With --worktree it works in a directory of its own beside the workspace: a git worktree with all files, ignored ones and environments included, or a plain copy without git. Git worktrees share stash, tags and clean-up with the repository.',
    ],
    argument: { name: 'thread', completes: 'nothing' },
    options: [
      inWorkspace,
      { name: 'worktree', describe: 'Give the copy files of its own' },
      { name: 'at', value: 'turn', describe: 'Copy up to this turn; default: all turns' },
      { name: 'name', value: 'name', describe: 'Name the copy' },
      noStart,
      json,
    ],
    examples: ['fork thread_20261125_abc123', 'fork thread_20261125_abc123 --worktree --at turn_003'],
    load: async () => ({ run: (await import('./commands/fork.ts')).run }),
  },
  {
    name: 'merge',
    describe: [
      'Merge the files of a fork into its original.',
      'Files that only the fork changed take its state; texts that both changed are merged line by line. Where that is impossible, nothing is merged and the files are listed. The output names a restore id, which takes the merge back.',
    ],
    argument: { name: 'thread', completes: 'nothing' },
    options: [
      inWorkspace,
      { name: 'force', describe: 'Overwrite conflicting changes with those of the fork' },
      noStart,
      json,
    ],
    examples: ['merge thread_20261125_abc123', 'merge thread_20261125_abc123 --force'],
    load: async () => ({ run: (await import('./commands/merge.ts')).run }),
  },
  {
    name: 'race',
    describe: [
      'Run attempts side by side; apply the first that passes.',
      'Each attempt works in a worktree of its own. When a turn ends, the check runs there, in the sandbox; the first attempt that passes is applied to the workspace as one change, which undo takes back. The others are stopped and stay until --prune.',
    ],
    argument: { name: 'prompt', completes: 'nothing' },
    options: [
      { name: 'attempts', value: 'count', describe: 'Run this many, 1 to 8; default: agents or 3' },
      { name: 'check', value: 'command', describe: 'Accept an attempt when this shell command succeeds in it' },
      {
        name: 'agent',
        value: 'agents',
        repeats: true,
        describe: 'Use these agents in turn, separated by commas or repeated',
      },
      { name: 'model', value: 'models', describe: 'Use these models in turn, separated by commas' },
      { name: 'effort', value: 'efforts', describe: 'Use these efforts in turn, separated by commas' },
      { name: 'outside', describe: 'Run the check outside of the sandbox, with your rights' },
      { name: 'prune', describe: 'Delete the attempts of earlier races' },
      { name: 'force', describe: 'Delete attempts that you changed, too; with --prune' },
      yes,
      inWorkspace,
      noStart,
      json,
    ],
    examples: [
      'race "Fix the parser" --attempts 3 --check "npm test" --yes',
      'race "Fix the parser" --agent oratorio --agent codex --check "npm test" --yes',
      'race --prune',
    ],
    load: async () => ({ run: (await import('./commands/race.ts')).run }),
  },
];
