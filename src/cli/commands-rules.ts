/** Commands about the rules of tools. */
import { ruleDecisions } from '../config/index.ts';
import type { CommandSpec } from './command.ts';
import { inWorkspace, json } from './shared-options.ts';

export const ruleCommands: readonly CommandSpec[] = [
  {
    name: 'rules',
    describe: [
      'List the rules about calls of tools.',
      'Rules of your config.json and of a trusted workspace, and those you saved for this workspace. The strictest that matches holds.',
    ],
    options: [inWorkspace, json],
    examples: ['rules', 'rules --json'],
    load: async () => ({ run: (await import('./commands/rules.ts')).list }),
  },
  {
    name: 'rules list',
    describe: ['List the rules about calls of tools.'],
    options: [inWorkspace, json],
    examples: ['rules list'],
    load: async () => ({ run: (await import('./commands/rules.ts')).list }),
  },
  {
    name: 'rules add',
    describe: [
      'Save a rule for a workspace.',
      'Without --tool it is about commands that begin with these words. It holds at once and is in your own state, not in the workspace.',
    ],
    argument: { name: 'words', completes: 'nothing' },
    options: [
      {
        name: 'decision',
        value: 'decision',
        choices: ruleDecisions,
        describe: 'Allow, ask about or deny; default: allow',
      },
      { name: 'tool', value: 'tool', describe: 'Make it about this tool, e.g. mcp__server__*' },
      { name: 'pattern', describe: 'Read the words as a pattern with * and ?' },
      { name: 'network', describe: 'Give the allowed commands the network in the sandbox' },
      inWorkspace,
      json,
    ],
    examples: [
      'rules add "npm run build"',
      'rules add --decision deny "git push"',
      'rules add --tool WriteFile --pattern "docs/*"',
      'rules add --network "npm install"',
    ],
    load: async () => ({ run: (await import('./commands/rules.ts')).add }),
  },
  {
    name: 'rules remove',
    describe: ['Remove a saved rule by its number in the list.'],
    argument: { name: 'number', completes: 'nothing' },
    options: [inWorkspace, json],
    examples: ['rules remove 2'],
    load: async () => ({ run: (await import('./commands/rules.ts')).remove }),
  },
  {
    name: 'rules test',
    describe: [
      'Show the decision of the rules about a command.',
      'Runs nothing. Prints the decision, its reason, and the commands that were recognised.',
    ],
    argument: { name: 'command', completes: 'nothing' },
    options: [inWorkspace, json],
    examples: ['rules test "npm test && git push"'],
    load: async () => ({ run: (await import('./commands/rules.ts')).test }),
  },
];
