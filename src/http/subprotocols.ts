const name = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

/** Names in `Sec-WebSocket-Protocol`, in the order of the client; none for a header that is not valid (RFC 6455, section 11.3.4). */
export function offeredSubprotocols(header: string | undefined): readonly string[] {
  const names = (header ?? '').split(',').map((each) => each.trim());
  return names.every((each) => name.test(each)) ? names : [];
}
