import { StringDecoder } from 'node:string_decoder';

/** A `data` payload longer than this is no answer of a model. */
const longestEvent = 4 * 1_048_576;

/**
 * The `data` payloads of an event stream (WHATWG HTML §9.2.6), whatever chunks its bytes come in. Other fields, comments
 * and an unfinished event at the end are left out, as the standard has it.
 *
 * @throws RangeError when one event exceeds 4 MiB
 */
export async function* sseData(chunks: AsyncIterable<Uint8Array>): AsyncIterable<string> {
  const decoder = new StringDecoder('utf8');
  let rest = '';
  let data: string[] = [];
  let size = 0;
  for await (const chunk of chunks) {
    rest += decoder.write(Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength));
    // A carriage return at the very end may be half of a CRLF: it waits for the next chunk.
    const lines = rest.split(/\r\n|\n|\r(?!$)/);
    rest = lines.pop() ?? '';
    for (const line of lines) {
      if (line === '') {
        if (data.length > 0) yield data.join('\n');
        data = [];
        size = 0;
      } else if (line.startsWith('data:')) {
        data.push(line.slice(line[5] === ' ' ? 6 : 5));
        size += line.length;
      }
    }
    if (size + rest.length > longestEvent) throw new RangeError('an event of the stream is too long');
  }
}
