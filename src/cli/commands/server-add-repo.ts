import { addRepositoryChange, readStack, repositoryNamed } from '../../deploy/index.ts';
import type { CommandContext } from '../command.ts';
import { usageError } from '../errors.ts';
import { exitCodes } from '../exit-codes.ts';
import { carryOut, showPlan } from '../server/carry-out.ts';
import { given, stackDirectory } from '../server/given.ts';

/** `oratorio server add-repo`: one more repository of a stack. */
export async function run(context: CommandContext): Promise<number> {
  const { argument, options, output } = context;
  if (argument === undefined) throw usageError('Name the repository: github:owner/name', 'server add-repo');
  const repository = repositoryNamed(argument);
  const restarts = options['restart'] !== false;
  const done = await carryOut(
    context,
    addRepositoryChange({
      directory: stackDirectory(context),
      repository,
      cloneUrl: given(context, 'clone-url') ?? null,
      autoReview: options['auto-review'] !== false,
      restarts,
    }),
    null,
  );
  const found = readStack(stackDirectory(context)).config.repositories.find(
    (each) => each.repository.toLowerCase() === repository.key,
  );
  const name = found?.repository ?? repository.fullName;
  if (done.state === 'dry') showPlan(context, done.plan);
  else if (output.json)
    output.document({
      repository: name,
      workspacePath: found?.workspacePath ?? repository.workspacePath,
      changed: done.changed,
    });
  else if (done.changed.length === 0) output.line(`${name} is there already.`);
  else output.line(`${name} is reviewed${restarts ? '' : ' after: oratorio server restart --service backend'}.`);
  return exitCodes.ok.code;
}
