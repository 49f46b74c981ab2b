import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import type { ZlibOptions } from 'node:zlib';
import { ModelError } from '../../model.ts';

/**
 * The body of a response without its `Content-Encoding`: some gateways compress although the request asks for `identity`. Pieces
 * arrive without a delay. The receiver bounds the decoded size.
 * @throws ModelError for an unknown encoding
 */
export function decoded(response: IncomingMessage): Readable {
  const encodings = (response.headers['content-encoding'] ?? '')
    .split(',')
    .map((encoding) => encoding.trim().toLowerCase())
    .filter((encoding) => encoding !== '' && encoding !== 'identity');
  let body: Readable = response;
  for (const encoding of encodings.reverse()) body = body.pipe(decoderOf(encoding));
  if (body !== response) {
    response.on('error', (error) => body.destroy(error));
    // A connection that breaks ends no stream that is piped from it.
    response.on('close', () => {
      if (!response.complete) body.destroy();
    });
  }
  return body;
}

function decoderOf(encoding: string) {
  const zlib = process.getBuiltinModule('node:zlib');
  const { Z_SYNC_FLUSH, BROTLI_OPERATION_FLUSH } = zlib.constants;
  const options: ZlibOptions = { flush: Z_SYNC_FLUSH, finishFlush: Z_SYNC_FLUSH };
  if (encoding === 'gzip' || encoding === 'x-gzip') return zlib.createGunzip(options);
  if (encoding === 'deflate') return zlib.createInflate(options);
  if (encoding === 'br')
    return zlib.createBrotliDecompress({ flush: BROTLI_OPERATION_FLUSH, finishFlush: BROTLI_OPERATION_FLUSH });
  throw new ModelError(
    'upstreamProtocol',
    `The upstream compresses its answer in an unknown way (${encoding.slice(0, 32)}), although the request asks for none.`,
    { isRetryable: false },
  );
}
