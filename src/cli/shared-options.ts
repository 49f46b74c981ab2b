/** Options and arguments that several commands share. */
import { reasoningEfforts } from '../protocol/index.ts';
import type { ArgumentSpec, OptionSpec } from './command.ts';

export const json: OptionSpec = { name: 'json', describe: 'Print JSON; errors as {"error":{…}}' };
export const noStart: OptionSpec = { name: 'no-start', describe: 'Fail with exit code 3 instead of starting a Hub' };
export const yes: OptionSpec = {
  name: 'yes',
  alias: 'y',
  describe: 'Approve everything the agent asks for, shell commands included',
};
export const plan: OptionSpec = { name: 'plan', describe: 'Request a plan: the agent reads and changes nothing' };
export const inPlace: OptionSpec = {
  name: 'in',
  value: 'place',
  choices: ['local', 'container', 'pod'],
  describe: 'Run the agent server there from now on',
};
/** Options that choose the place of an agent server. */
export const placeOptions: readonly OptionSpec[] = [
  inPlace,
  { name: 'image', value: 'name', describe: 'Use this image for the container or pod' },
  { name: 'network', value: 'network', choices: ['none', 'bridge'], describe: 'Give the container this network' },
];
export const workspace: ArgumentSpec = { name: 'workspace', completes: 'directories' };
export const inWorkspace: OptionSpec = {
  name: 'workspace',
  value: 'dir',
  describe: 'Use this workspace directory; default: the current one',
};
export const effort: OptionSpec = {
  name: 'effort',
  value: 'effort',
  choices: reasoningEfforts,
  describe: 'Set the time for reasoning: none to xhigh',
};
