import type { Repository } from '../files/index.ts';
import { cloneUrlFor, findGit } from '../git/index.ts';
import { appKeyIn } from '../github/index.ts';
import { planAddRepository } from '../plan/index.ts';
import { readStack, readText, type Stack } from '../stack/index.ts';
import { userOf } from './agent-move.ts';
import { type Change, mustBeStack } from './change-stack.ts';
import { asReported, placed, type SpellingSource } from './place-repository.ts';
import { hostOf } from './source-host.ts';

export interface AddRepositoryWish {
  readonly directory: string;
  readonly repository: Repository;
  readonly cloneUrl: string | null;
  readonly autoReview: boolean;
  readonly restarts: boolean;
}

/** One more repository of a stack. */
export const addRepositoryChange = (wish: AddRepositoryWish): Change => ({
  directory: wish.directory,
  command: 'add-repo',
  check: mustBeStack(wish.directory),
  async prepare({ session }) {
    const { directory, cloneUrl, autoReview, restarts } = wish;
    const stack = readStack(directory);
    const { endpoint } = stack.config;
    const source = { endpoint, app: appOf(stack) };
    const reported = cloneUrl === null ? await asReported(wish.repository, source, session) : wish.repository;
    const repository = placed(reported, stack.layout, stack.config);
    const git = await findGit(session);
    return planAddRepository({
      directory,
      config: readText(stack.layout.config),
      repository,
      url: await cloneUrlFor(git, repository.fullName, cloneUrl ?? undefined, hostOf(endpoint, session)),
      autoReview,
      restarts,
      user: userOf(stack),
    });
  },
});

/** The App of the stack; null without an id or a usable key. */
function appOf({ config: { appId }, layout }: Stack): SpellingSource['app'] {
  try {
    return appId === null ? null : { appId, privateKey: appKeyIn(layout.privateKey) };
  } catch {
    // The doctor reports the key. Without it, a private repository keeps the given spelling.
    return null;
  }
}
