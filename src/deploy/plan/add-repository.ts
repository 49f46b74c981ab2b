import { type Repository, withRepository } from '../files/index.ts';
import { type StackUser, stackFiles } from '../stack/index.ts';
import type { Plan, Step } from '../stack-plan.ts';
import { awaitHealthy, phase, start, writeTheirs } from './steps.ts';

export interface AddRepositoryFacts {
  readonly directory: string;
  /** Current text of `oratorio.config.json`. */
  readonly config: string;
  readonly repository: Repository;
  readonly url: string;
  readonly autoReview: boolean;
  readonly user: StackUser;
  readonly restarts: boolean;
}

/** One more repository: its checkout first, so that no route ever leads to nothing. @throws DeployError when it collides with another */
export function planAddRepository(facts: AddRepositoryFacts): Plan {
  const { directory, config, repository, url, autoReview, user, restarts } = facts;
  const give = (given: string): readonly Step[] =>
    user.isOther ? [{ do: 'giveTo', path: given, uid: user.uid, gid: user.gid }] : [];
  const path = `${stackFiles.workspace}/${repository.directory}`;
  const { fullName, workspacePath } = repository;
  const changed = withRepository(config, { repository: fullName, workspacePath, autoReview });
  return {
    command: 'add-repo',
    directory,
    onFailure: 'undo',
    reveals: [],
    notes: [],
    phases: [
      phase('checkouts', `Cloning ${fullName}`, [{ do: 'clone', repository: fullName, url, path }, ...give(path)]),
      phase('files', 'Adding it to the configuration', [
        writeTheirs(stackFiles.config, changed),
        ...give(stackFiles.config),
      ]),
      // A file that is a mount of its own keeps its old content in a container until the container is made again.
      ...(restarts && changed !== config
        ? [
            phase('validate', 'Checking the composition', [
              { do: 'checkComposition' },
              { do: 'pullImages', services: ['backend'] },
            ]),
            phase('recreate', 'Giving it to the backend', [start(['backend'], true), awaitHealthy(['backend'])]),
          ]
        : []),
    ],
  };
}
