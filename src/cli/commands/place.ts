import type { PlaceStatusAnswer, RecordAnswer } from '../../client/index.ts';
import type { CommandContext } from '../command.ts';
import { exitCodes } from '../exit-codes.ts';
import { during, withHub, withHubOf } from '../hub.ts';
import { placeOption } from '../place-options.ts';
import { inLine, recordLines } from '../render.ts';
import { workspacePath } from '../workspace.ts';

/** `oratorio place [workspace] [place]` */
export async function run(context: CommandContext): Promise<number> {
  const { output, signal } = context;
  const place = placeOption(context, 'place');
  if (place) {
    const path = workspacePath(context, context.argument);
    const record = await withHubOf(context, path, ({ hub }) =>
      during(context, `Moving the agent server of ${path}`, () =>
        hub.restart({ workspacePath: path, place }, { signal }),
      ),
    );
    if (output.json) output.document(record);
    else for (const line of recordLines(record, output.colors)) output.line(line);
    return exitCodes.ok.code;
  }
  const shown = await withHub(context, async ({ hub }) => ({
    places: await hub.places({ signal }),
    record:
      context.argument === undefined
        ? null
        : await hub.byWorkspace(workspacePath(context, context.argument), { signal }),
  }));
  if (output.json) output.document(shown);
  else for (const line of linesOf(shown)) output.line(line);
  return exitCodes.ok.code;
}

interface Shown {
  readonly places: readonly PlaceStatusAnswer[];
  readonly record: RecordAnswer | null;
}

function linesOf({ places, record }: Shown): string[] {
  const kind = record?.place?.kind ?? 'local';
  const current = record ? [`${inLine(record.canonicalWorkspacePath)} runs in the place ${inLine(kind)}.`] : [];
  return [
    ...current,
    ...places.map(({ kind: name, isDefault, engine, image, version, problem }) => {
      const facts = [version, image, engine].flatMap((fact) => (fact === null ? [] : inLine(fact)));
      const state = problem === null ? 'ready' : inLine(problem);
      return [`${name}${isDefault ? ' (default)' : ''}`, ...facts, state].join('  ');
    }),
  ];
}
