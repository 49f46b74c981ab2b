import * as v from 'valibot';
import { count } from '../../../lib/index.ts';
import type { Tool } from '../../tool.ts';
import { defineTool } from '../define.ts';
import { done, failed, formatBytes } from '../text.ts';
import { createAccess } from './access.ts';
import { pathAliases, path as pathParameter } from './parameters.ts';
import { withPreview } from './preview.ts';
import { replaceFile, withFileLock } from './replace-file.ts';
import type { FileToolSettings } from './settings.ts';

const parameters = v.object({
  path: pathParameter(),
  content: v.string('a string'),
});
type Args = v.InferOutput<typeof parameters>;

/** `WriteFile`: makes a file or replaces its whole content, atomically. */
export function createWriteFile(settings: FileToolSettings): Tool {
  const access = createAccess<Args>('write', ({ path }) => path, settings);
  return defineTool({
    name: 'WriteFile',
    description: 'Creates a file, with its directories, or replaces all of its content.',
    isReadOnly: false,
    replacesFile: true,
    parameters,
    aliases: { path: pathAliases, content: ['contents', 'text', 'file_text', 'data'] },
    placeOf: ({ path }) => path,
    approvalFor: async (args, context) => withPreview(await access.approvalFor(args, context), () => args.content),
    run: (args, context) =>
      access.enter(args, context, async ({ path, shown }) => {
        const data = Buffer.from(args.content, 'utf8');
        if (/[\\/]$/.test(args.path)) return failed(`${args.path} names a directory; give the path of a file.`);
        if (data.length > settings.maxFileBytes) {
          const most = formatBytes(settings.maxFileBytes);
          return failed(
            `The content has ${formatBytes(data.length)}; at most ${most} are written (Tools.File.MaxFileBytes).`,
          );
        }
        const before = await withFileLock(path, () => replaceFile(path, data, context));
        const size = `${formatBytes(data.length)}, ${count(linesIn(args.content), 'line')}`;
        return done(
          before === undefined
            ? `Created ${shown} (${size}).`
            : `Overwrote ${shown} (${size}; before: ${formatBytes(before)}).`,
        );
      }),
  });
}

function linesIn(text: string): number {
  const feeds = text.split('\n').length - 1;
  return text === '' || text.endsWith('\n') ? feeds : feeds + 1;
}
