/**
 * Program: copies descriptor 3 and 4 into two log files without the secrets named on standard input, and ends with them.
 * It never stops reading: a full disk loses log lines, and does not block the process that writes them.
 */
import { readFileSync, writeSync } from 'node:fs';
import { Socket } from 'node:net';
import { openToAppend, StreamRedactor } from '../lib/index.ts';
import type { RedactorDocument } from './log-redactor.ts';

function copy(fd: number, file: string, secrets: readonly string[]): void {
  const redactor = new StreamRedactor(secrets);
  const log = openToAppend(file);
  const append = (bytes: Buffer) => {
    try {
      for (let written = 0; written < bytes.length; ) written += writeSync(log, bytes, written);
    } catch {
      // A full disk: the line is lost.
    }
  };
  const source = new Socket({ fd, readable: true, writable: false });
  source.on('data', (chunk) => append(redactor.write(chunk)));
  source.on('error', () => {});
  source.on('close', () => append(redactor.end()));
}

const { secrets, files }: RedactorDocument = JSON.parse(readFileSync(0, 'utf8'));
process.title = 'oratorio-log-redactor';
for (const signal of ['SIGHUP', 'SIGINT', 'SIGTERM', 'SIGXFSZ'] as const) process.on(signal, () => {});
copy(3, files[0], secrets);
copy(4, files[1], secrets);
