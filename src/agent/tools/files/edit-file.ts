import * as v from 'valibot';
import { count } from '../../../lib/index.ts';
import type { Tool, ToolContext, ToolResult } from '../../tool.ts';
import { defineTool } from '../define.ts';
import { done, failed, formatBytes } from '../text.ts';
import { createAccess, type PermittedPath } from './access.ts';
import { decodeText, type EncodedText, encodeText, sniff, sniffBytes } from './content.ts';
import { applyEdits } from './edit-apply.ts';
import type { Edit } from './edit-lines.ts';
import { FileError } from './errors.ts';
import { type OpenFile, openFile } from './handles.ts';
import { pathAliases, path as pathParameter } from './parameters.ts';
import { withPreview } from './preview.ts';
import { replaceFile, withFileLock } from './replace-file.ts';
import { type FileToolSettings, limits } from './settings.ts';
import { unifiedDiff } from './unified-diff.ts';

const text = v.string('a string');
const all = v.optional(v.boolean('true or false'), false);
const parameters = v.object({
  path: pathParameter(),
  oldText: v.optional(v.pipe(text, v.description('Exact text of the file, with enough around it to occur once.'))),
  newText: v.optional(text),
  replaceAll: v.pipe(all, v.description('Every occurrence.')),
  // Described once, where they stand alone.
  edits: v.optional(
    v.array(
      v.object({ oldText: text, newText: text, replaceAll: all }),
      'a list of edits, each with oldText and newText',
    ),
  ),
});
type Args = v.InferOutput<typeof parameters>;

/** Edits of a call; undefined: it has none. */
function editsOf({ oldText, newText, replaceAll, edits = [] }: Args): readonly Edit[] | undefined {
  if (oldText === undefined || newText === undefined) return edits.length > 0 ? edits : undefined;
  return [{ oldText, newText, replaceAll }, ...edits];
}

/** An edit whose file another program changes at the same moment is tried once more, on the new content. */
const maxTries = 2;

/** `EditFile`: replaces a piece of text that is there exactly once. */
export function createEditFile(settings: FileToolSettings): Tool {
  const maxBytes = Math.min(settings.maxFileBytes, limits.editBytes);
  const access = createAccess<Args>('edit', ({ path }) => path, settings);
  return defineTool({
    name: 'EditFile',
    description:
      'Replaces oldText, which is in the file exactly once, by newText. Several edits of one file go into edits: all or none, each against the current file.',
    isReadOnly: false,
    replacesFile: true,
    parameters,
    aliases: {
      path: pathAliases,
      oldText: ['old_string', 'old', 'search', 'old_str', 'find'],
      newText: ['new_string', 'new', 'replace', 'new_str', 'replacement'],
      replaceAll: ['all'],
    },
    placeOf: ({ path }) => path,
    approvalFor: async (args, context) =>
      withPreview(await access.approvalFor(args, context), (before) => {
        const edits = editsOf(args);
        const edited = edits && applyEdits(before, edits);
        return edited?.ok ? edited.text : undefined;
      }),
    run: (args, context) =>
      access.enter(args, context, (place) => withFileLock(place.path, () => editFile(place, args, maxBytes, context))),
  });
}

type EditContext = Pick<ToolContext, 'workspacePath' | 'signal' | 'onReplace'>;

async function editFile(place: PermittedPath, args: Args, maxBytes: number, context: EditContext): Promise<ToolResult> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await editOnce(place, args, maxBytes, context);
    } catch (error) {
      const isStale = error instanceof FileError && error.code === 'stale';
      if (!isStale || tries === maxTries) throw error;
    }
  }
}

async function editOnce(
  { path, shown }: PermittedPath,
  args: Args,
  maxBytes: number,
  context: EditContext,
): Promise<ToolResult> {
  const { text, encoded, stats } = await readText(path, maxBytes);
  const edits = editsOf(args);
  if (!edits) return failed('EditFile: oldText and newText, or edits, must be given.');
  const edited = applyEdits(text, edits);
  if (!edited.ok) return failed(`${shown}: ${edited.problem}`);
  const data = encodeText(edited.text, encoded);
  if (data.length > maxBytes) throw tooLarge(data.length, maxBytes);
  await replaceFile(path, data, { ...context, expected: stats });
  const { changes, differs } = edited;
  const how = differs === undefined ? '' : ` (matched but for ${differs})`;
  const diff = unifiedDiff(shown, text, edited.text, changes);
  return done(`Edited ${shown}: ${count(changes.length, 'replacement')}${how}.\n\n${diff}`);
}

interface ReadText {
  readonly text: string;
  readonly encoded: EncodedText;
  readonly stats: OpenFile['stats'];
}

/** @throws FileError tooLarge, notText */
async function readText(path: string, maxBytes: number): Promise<ReadText> {
  const file = await openFile(path);
  try {
    const size = Number(file.stats.size);
    if (size > maxBytes) throw tooLarge(size, maxBytes);
    const bytes = await file.handle.readFile();
    const sniffed = sniff(bytes.subarray(0, sniffBytes));
    if (sniffed.kind !== 'text') throw new FileError('notText', 'it is not a text file');
    const text = decodeText(bytes, sniffed);
    // A text that does not survive decoding and encoding would be damaged far from the edit.
    if (!encodeText(text, sniffed).equals(bytes)) {
      throw new FileError(
        'notText',
        `it is not valid ${sniffed.encoding.toUpperCase()} all through, an edit would damage it`,
      );
    }
    return { text, encoded: sniffed, stats: file.stats };
  } finally {
    await file.close();
  }
}

const tooLarge = (size: number, maxBytes: number): FileError =>
  new FileError(
    'tooLarge',
    `it has ${formatBytes(size)}, files are edited up to ${formatBytes(maxBytes)} (Tools.File.MaxFileBytes)`,
  );
