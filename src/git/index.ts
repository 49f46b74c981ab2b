/**
 * Git outside of the sandbox: one environment for every git process, in which a repository names no program that runs. All rooms
 * that need git start it here, or with `gitEnvironment`; a check refuses any other start (`test/git/starts.test.ts`).
 *
 * Never here: the meaning of a command's output, git that runs in the sandbox or in a container.
 */
export { type GitEnvironmentOptions, type GitSetting, gitEnvironment } from './environment.ts';
export { type GitRun, runGit } from './run-git.ts';
