import { stat } from 'node:fs/promises';
import * as v from 'valibot';
import { inspectPicture } from '../../pictures.ts';
import type { Tool, ToolResult } from '../../tool.ts';
import { defineTool } from '../define.ts';
import { done, failed, formatBytes } from '../text.ts';
import { createAccess, type PermittedPath } from './access.ts';
import { type EncodedText, sniff, sniffBytes } from './content.ts';
import { type OpenFile, openFile } from './handles.ts';
import { LineReader, windowNotice } from './line-window.ts';
import { listDirectory } from './list-directory.ts';
import { pathAliases, path as pathParameter, positive } from './parameters.ts';
import { type FileToolSettings, limits } from './settings.ts';

const chunkBytes = 262_144;

const parameters = v.object({
  path: pathParameter(),
  offset: v.optional(positive(Number.MAX_SAFE_INTEGER, 'First line or entry, from 1.'), 1),
  limit: v.optional(positive(Number.MAX_SAFE_INTEGER), limits.readLines),
});
type Args = v.InferOutput<typeof parameters>;

/**
 * `ReadFile`. Returns the exact lines of the file, without numbers, so that text that the model copies into `EditFile`
 * matches; the notice under them says which lines they are.
 */
export function createReadFile(settings: FileToolSettings): Tool {
  const access = createAccess<Args>('read', ({ path }) => path, settings);
  return defineTool({
    name: 'ReadFile',
    description: `Reads a text file unchanged (at most ${limits.readLines} lines or ${limits.readBytes / 1024} KB), shows an image, or lists a directory.`,
    isReadOnly: true,
    parameters,
    aliases: { path: pathAliases, offset: ['start_line', 'line'], limit: ['lines', 'num_lines', 'max_lines'] },
    placeOf: ({ path }) => path,
    approvalFor: access.approvalFor,
    run: (args, context) =>
      access.enter(args, context, async (place) => {
        if ((await stat(place.path)).isDirectory()) return listDirectory(place, args.offset, args.limit);
        const file = await openFile(place.path);
        try {
          return await show(file, place, args, context.signal);
        } finally {
          await file.close();
        }
      }),
  });
}

async function show(file: OpenFile, place: PermittedPath, args: Args, signal: AbortSignal): Promise<ToolResult> {
  const { maxFileBytes } = place;
  const size = Number(file.stats.size);
  if (size > maxFileBytes) {
    return failed(
      `${place.shown} has ${formatBytes(size)}, more than the ${formatBytes(maxFileBytes)} that are read ` +
        '(Tools.File.MaxFileBytes). Search it with GrepFiles instead.',
    );
  }
  const head = await readHead(file);
  if (head.length === 0) return done(`[${place.shown} is empty.]`);
  const sniffed = sniff(head);
  if (sniffed.kind === 'image') return showImage(file, place, sniffed.mimeType);
  if (sniffed.kind === 'binary') {
    return done(
      `[${place.shown} is a binary file (${formatBytes(size)}, probably ${sniffed.label}); it is not shown.]`,
    );
  }
  return showText(file, place, args, sniffed, { maxBytes: maxFileBytes, signal });
}

async function readHead({ handle }: OpenFile): Promise<Buffer> {
  const head = Buffer.alloc(sniffBytes);
  const { bytesRead } = await handle.read(head, 0, sniffBytes, 0);
  return head.subarray(0, bytesRead);
}

async function showImage({ handle, stats }: OpenFile, { shown }: PermittedPath, mimeType: string): Promise<ToolResult> {
  const label = `${mimeType.slice('image/'.length).toUpperCase()} image`;
  const size = Number(stats.size);
  if (size > limits.imageBytes) {
    return failed(
      `${shown} is a ${label} of ${formatBytes(size)}; at most ${formatBytes(limits.imageBytes)} can be shown.`,
    );
  }
  const found = inspectPicture(await handle.readFile());
  if ('problem' in found) return failed(`${shown} is a ${label} that cannot be shown: it ${found.problem}.`);
  return { text: `[${shown}: ${label}, ${formatBytes(size)}.]`, isError: false, images: [found.picture] };
}

interface ReadLimits {
  readonly maxBytes: number;
  readonly signal: AbortSignal;
}

async function showText(
  { handle }: OpenFile,
  { shown }: PermittedPath,
  { offset, limit }: Args,
  { encoding, bomBytes }: EncodedText,
  { maxBytes, signal }: ReadLimits,
): Promise<ToolResult> {
  const reader = new LineReader({
    offset,
    limit: Math.min(limit, limits.readLines),
    maxBytes: limits.readBytes,
    maxLineChars: limits.lineChars,
  });
  const decoder = new TextDecoder(encoding, { ignoreBOM: true });
  const chunk = Buffer.alloc(chunkBytes);
  // A file that grows while it is read is read as far as files may be long.
  for (let at = bomBytes; at < maxBytes; ) {
    signal.throwIfAborted();
    const { bytesRead } = await handle.read(chunk, 0, chunkBytes, at);
    if (bytesRead === 0) break;
    reader.add(decoder.decode(chunk.subarray(0, bytesRead), { stream: true }));
    at += bytesRead;
  }
  reader.add(decoder.decode());
  const window = reader.finish();
  if (window.total === 0) return done(`[${shown} is empty.]`);
  if (offset > window.total) return failed(`${shown} has ${window.total} lines; offset ${offset} is beyond the last.`);
  const notice = windowNotice(window, offset);
  return done(window.lines.join('\n') + (notice === undefined ? '' : `\n\n${notice}`));
}
