/** Names the source where the report of a failure names a bundle of the run. */
import { readFileSync } from 'node:fs';
import { SourceMap } from 'node:module';
import { dirname, relative, resolve } from 'node:path';
import { root } from './toolchain.mjs';

interface Place {
  readonly file: string;
  readonly line: number;
  readonly column: number;
}

/** Place of a stack: `test/x.js:3:7`. */
const stackPlace = /([\w@./+-]+\.js):(\d+):(\d+)/g;
/** Place of an assertion, on three lines. */
const fieldPlace = /(fileName: )(\S+\.js)(\n *lineNumber: )(\d+)(\n *columnNumber: )(\d+)/g;

/**
 * Replaces places in the bundles of `directory` by those of their sources. Test processes run without `--enable-source-maps`,
 * which reads the maps of all bundles at each start: those of failures are looked up here.
 * @param text TAP or a stack; its paths are absolute or from the root of the repository
 */
export function withSourcePlaces(text: string, directory: string): string {
  const maps = new Map<string, SourceMap | undefined>();
  const sourceOf = (file: string, line: string, column: string): Place | undefined => {
    const bundle = resolve(root, file.replace(/^file:\/\//, ''));
    if (!bundle.startsWith(`${directory}/`)) return undefined;
    if (!maps.has(bundle)) maps.set(bundle, readMap(bundle));
    const entry = maps.get(bundle)?.findEntry(Number(line) - 1, Number(column) - 1);
    if (entry === undefined || !('originalSource' in entry)) return undefined;
    return {
      file: relative(root, resolve(dirname(bundle), entry.originalSource)),
      line: entry.originalLine + 1,
      column: entry.originalColumn + 1,
    };
  };
  return text
    .replaceAll(fieldPlace, (all, ...[name, file, lineName, line, columnName, column]: string[]) => {
      const source = sourceOf(file ?? '', line ?? '', column ?? '');
      return source ? `${name}${source.file}${lineName}${source.line}${columnName}${source.column}` : all;
    })
    .replaceAll(stackPlace, (all, ...[file, line, column]: string[]) => {
      const source = sourceOf(file ?? '', line ?? '', column ?? '');
      return source ? `${source.file}:${source.line}:${source.column}` : all;
    });
}

/** Undefined for a bundle without a map: that of tap. */
function readMap(bundle: string): SourceMap | undefined {
  try {
    return new SourceMap(JSON.parse(readFileSync(`${bundle}.map`, 'utf8')));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}
