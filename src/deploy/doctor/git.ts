import { runProgram } from '../engine/index.ts';
import { DeployError } from '../errors.ts';
import type { RunGit } from './types.ts';

/** Runs the host's git without prompts. @throws DeployError gitMissing */
export async function runGit(...[args, options]: Parameters<RunGit>): ReturnType<RunGit> {
  const { PATH = '', HOME = '' } = process.env;
  const env = { PATH, HOME, LANG: 'C', GIT_TERMINAL_PROMPT: '0', GIT_OPTIONAL_LOCKS: '0' };
  try {
    return await runProgram({ program: 'git', name: 'git', args, env, ...options });
  } catch (error) {
    if (!(error instanceof DeployError) || error.code !== 'engineMissing') throw error;
    throw new DeployError('gitMissing', 'git is not installed.', 'Install it: apt-get install git');
  }
}
