import { visible } from '../lib/index.ts';

/** A path as it can be pasted into a shell; characters that a terminal would not show are spelled out, byte by byte. */
export function quotedPath(path: string): string {
  if (/^[\w@%+=:,./-]+$/.test(path)) return path;
  if (visible(path, { multiline: false }) === path) return `'${path.replaceAll("'", `'\\''`)}'`;
  const bytes = [...Buffer.from(path)].map((byte) =>
    /[\w@%+=:,./-]/.test(String.fromCharCode(byte))
      ? String.fromCharCode(byte)
      : `\\x${byte.toString(16).padStart(2, '0')}`,
  );
  return `$'${bytes.join('')}'`;
}
