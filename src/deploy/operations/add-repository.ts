import type { Repository } from '../files/index.ts';
import { cloneUrlFor, findGit } from '../git/index.ts';
import { planAddRepository } from '../plan/index.ts';
import { readStack, readText } from '../stack/index.ts';
import { userOf } from './agent-move.ts';
import { type Change, mustBeStack } from './change-stack.ts';
import { asReported, placed } from './place-repository.ts';
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
    const reported = cloneUrl === null ? await asReported(wish.repository, endpoint, session) : wish.repository;
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
