"""A second model of PyTorch's caching allocator, written from its rules and made differently from
the planner's: a segment is a map of what is taken (and, when it can grow, a set of pages that have
memory); free blocks are the gaps between. Slow and plain: every search looks at every gap.

A trace is a list of (kind, stream, id, bytes); kinds as in planner/timeline/event.h.
"""

TAKE, GIVE, USE, SYNC, EMPTY, MARK = range(6)
KIB, MIB = 1 << 10, 1 << 20
UNLIMITED = 1 << 50


class Settings:
    def __init__(self, text="", device=0, other=0, fraction=None):
        self.device, self.other = device, other
        self.fraction = fraction  # parts per billion
        self.max_split = None
        self.rounding = 20 * MIB
        self.large = 20 * MIB
        self.gc = None  # parts per billion
        self.expandable = False
        self.divisions = [0] * 16
        depth, pair = 0, ""
        for c in text + ",":
            depth += (c == "[") - (c == "]")
            if c == "," and depth == 0:
                if pair:
                    self.set(*pair.split(":", 1))
                pair = ""
            else:
                pair += c

    def set(self, key, value):
        if key == "max_split_size_mb":
            self.max_split = int(value) * MIB
        elif key == "max_non_split_rounding_mb":
            self.rounding = int(value) * MIB
        elif key == "large_segment_size_mb":
            self.large = int(value) * MIB
        elif key == "garbage_collection_threshold":
            self.gc = round(float(value) * 10**9)
        elif key == "expandable_segments":
            self.expandable = value == "True"
        elif key == "roundup_power2_divisions" and value[0] != "[":
            self.divisions = [int(value)] * 16
        elif key == "roundup_power2_divisions":
            named = [p.split(":") for p in value[1:-1].split(",")]
            steps = {int(k).bit_length() - 1: int(v) for k, v in named if k != ">"}
            above = [int(v) for k, v in named if k == ">"]
            for i in range(16):
                if i <= min(steps):
                    self.divisions[i] = steps[min(steps)]
                elif i in steps:
                    self.divisions[i] = steps[i]
                elif i > max(steps) and above:
                    self.divisions[i] = above[0]
        else:
            raise ValueError(key)

    def rounded(self, n):
        n = max(n, 512)
        power = n.bit_length() - 1
        steps = self.divisions[min(max(power - 20, 0), 15)]
        unit = 512
        if steps > 1 and n > 512 * steps:
            unit = 2**power // steps
        return -(-n // unit) * unit


class Segment:
    """start, size; taken: {address: size}, in whatever order; pages: of a segment that can grow."""

    def __init__(self, start, size, large, stream, page=None):
        self.start, self.size, self.large, self.stream = start, size, large, stream
        self.page = page
        self.pages = set()
        self.taken = {}
        self.free_since = None

    def mapped(self):
        """Ranges that have memory."""
        if self.page is None:
            return [(self.start, self.start + self.size)]
        ranges = []
        for p in sorted(self.pages):
            begin = self.start + p * self.page
            if ranges and ranges[-1][1] == begin:
                ranges[-1] = (ranges[-1][0], begin + self.page)
            else:
                ranges.append((begin, begin + self.page))
        return ranges

    def gaps(self):
        found = []
        used = sorted(self.taken.items())
        for begin, end in self.mapped():
            at = begin
            for address, size in used:
                if begin <= address < end:
                    if address > at:
                        found.append((at, address))
                    at = address + size
            if at < end:
                found.append((at, end))
        return found

    def unmapped(self):
        """Ranges without memory."""
        found, at = [], self.start
        for begin, end in self.mapped():
            if begin > at:
                found.append((at, begin))
            at = end
        if at < self.start + self.size:
            found.append((at, self.start + self.size))
        return found

    def can_become(self, gap):
        """Size of a gap with the range behind it that has no memory yet."""
        if self.page is None:
            return gap[1] - gap[0]
        return gap[1] - gap[0] + sum(e - b for b, e in self.unmapped() if b == gap[1])


class Allocator:
    def __init__(self, settings):
        self.s = settings
        self.limit = settings.device - settings.other if settings.device else UNLIMITED
        self.allowed = None
        if settings.device and settings.fraction:
            self.allowed = settings.device * settings.fraction // 10**9
        self.collects = self.allowed is not None and settings.gc is not None
        self.segments = []
        self.storage = {}  # id -> (segment, address, size, requested) or None
        self.waiting = []  # [segment, address, size, requested, streams]
        self.uses = {}
        self.searches = [0, 0]
        self.next = 2 * MIB
        self.figures = {k: [0, 0] for k in ("allocated", "requested", "active", "reserved")}
        self.at_peak = 0
        self.retries = self.failures = 0

    def add(self, name, n):
        f = self.figures[name]
        f[0] += n
        f[1] = max(f)

    def reserve(self, n):
        peak = self.figures["reserved"][1]
        self.add("reserved", n)
        if self.figures["reserved"][1] > peak:
            self.at_peak = self.figures["allocated"][0]

    def room(self, n):
        return self.figures["reserved"][0] + n <= self.limit

    def own(self, large, stream):
        return [g for g in self.segments if g.large == large and g.stream == stream]

    # ---- giving back

    def settle(self, segment, address, size, requested):
        del segment.taken[address]
        self.add("active", -size)
        self.add("requested", -requested)
        if not segment.taken:
            segment.free_since = self.searches[segment.large]

    def finish(self, streams=None):
        still = []
        for entry in self.waiting:
            entry[4] = set() if streams is None else entry[4] - streams
            if entry[4]:
                still.append(entry)
            else:
                self.settle(*entry[:4])
        self.waiting = still

    def drop(self, segment):
        self.segments.remove(segment)
        self.add("reserved", -segment.size)

    def release_all(self):
        self.finish()
        for g in list(self.segments):
            if g.page is None:
                if not g.taken:
                    self.drop(g)
                continue
            gone = set()
            for begin, end in g.gaps():
                first = -(-(begin - g.start) // g.page)
                gone |= set(range(first, (end - g.start) // g.page))
            g.pages -= gone
            self.add("reserved", -len(gone) * g.page)
            if gone and not g.pages:
                self.segments.remove(g)

    def collect(self):
        threshold = self.allowed * self.s.gc // 10**9
        over = self.figures["reserved"][0] - threshold
        old = [g for g in self.segments if g.large and g.page is None and not g.taken]
        if over <= 0:
            return
        age = {id(g): self.searches[1] - g.free_since for g in old}
        while over > 0 and old:
            average = sum(age[id(g)] for g in old), len(old)
            going = [g for g in old if age[id(g)] * average[1] >= average[0]]
            for g in going:
                self.drop(g)
                over -= g.size
            old = [g for g in old if g not in going]

    def release_oversize(self, large, stream, size):
        if self.s.max_split is None:
            return False
        wanted = max(size, self.s.max_split)
        whole = sorted((g.size, g.start, g) for g in self.own(large, stream)
                       if g.page is None and not g.taken)
        enough = [g for n, _, g in whole if n >= wanted]
        if enough:
            self.drop(enough[0])
            return True
        sum_ = 0
        for n, _, g in reversed(whole):
            if sum_ >= wanted or n < self.s.max_split:
                break
            self.drop(g)
            sum_ += n
        return sum_ >= wanted

    # ---- getting

    def best(self, large, stream, size):
        """(segment, gap) of the best fit"""
        all_ = sorted((gap[1] - gap[0], gap[0], i, gap)
                      for i, g in enumerate(self.segments)
                      if g.large == large and g.stream == stream for gap in g.gaps())
        fits = [(self.segments[i], gap) for n, _, i, gap in all_ if n >= size]
        if not fits:
            return None
        segment, gap = fits[0]
        for other, wider in fits[1:]:
            if segment.page is None or other.can_become(wider) >= segment.can_become(gap):
                break
            segment, gap = other, wider
        n = gap[1] - gap[0]
        limit = self.s.max_split
        if limit is not None:
            if size < limit <= n or size >= limit and n >= size + self.s.rounding:
                return None
        return segment, gap

    def grow(self, large, stream, size):
        page = self.s.large if large else 2 * MIB
        for g in sorted(self.own(large, stream), key=lambda g: g.start):
            pieces = sorted(g.gaps() + g.unmapped())
            without = set(g.unmapped())
            for i, piece in enumerate(pieces):
                if piece not in without:
                    continue
                first = i - 1 if i and pieces[i - 1][1] == piece[0] else i
                end = pieces[first][0]
                for p in pieces[first:]:
                    if p[0] != end or end - pieces[first][0] >= size:
                        break
                    end = p[1]
                if end - pieces[first][0] >= size:
                    return self.map(g, pieces[first][0], size)
        total = self.s.device or UNLIMITED
        length = -(-(total + total // 8) // page) * page
        start = -(-self.next // page) * page
        self.next = start + length
        g = Segment(start, length, large, stream, page)
        self.segments.append(g)
        return self.map(g, start, size)

    def map(self, g, begin, size):
        for b, e in g.unmapped():
            if e <= begin or b >= begin + size:
                continue
            b = max(b, begin)
            first = (b - g.start) // g.page
            last = -(-(min(e, begin + size) - g.start) // g.page)
            if not self.room((last - first) * g.page):
                return None
            g.pages |= set(range(first, last))
            self.reserve((last - first) * g.page)
        gap = [x for x in g.gaps() if x[0] <= begin < x[1]][0]
        return (g, gap) if gap[1] - begin >= size else None

    def from_driver(self, large, stream, size):
        if size <= MIB:
            n = 2 * MIB
        elif size < 10 * MIB:
            n = self.s.large
        else:
            n = -(-size // (2 * MIB)) * 2 * MIB
        if self.allowed is not None and self.figures["reserved"][0] + n > self.allowed:
            return None
        if self.s.expandable:
            return self.grow(large, stream, size)
        if not self.room(n):
            return None
        start = -(-self.next // (2 * MIB)) * 2 * MIB
        g = Segment(start, n, large, stream)
        self.next = start + n
        self.segments.append(g)
        self.reserve(n)
        return g, (start, start + n)

    def take(self, stream, name, requested):
        if requested == 0:
            self.storage[name] = None
            return
        size = self.s.rounded(requested)
        large = size > MIB
        if self.collects:
            self.searches[large] += 1
        found = self.best(large, stream, size)
        if not found:
            if self.collects:
                self.collect()
            found = self.from_driver(large, stream, size)
            if not found and self.release_oversize(large, stream, size):
                found = self.from_driver(large, stream, size)
            if not found:
                self.retries += 1
                self.release_all()
                found = self.from_driver(large, stream, size)
        if not found:
            self.failures += 1
            self.storage[name] = None
            return
        segment, (begin, end) = found
        rest = end - begin - size
        if not large or self.s.expandable:
            split = rest >= 512
        else:
            split = rest > MIB and (self.s.max_split is None or size < self.s.max_split)
        if not split:
            size = end - begin
        segment.taken[begin] = size
        self.storage[name] = segment, begin, size, requested
        self.add("allocated", size)
        self.add("active", size)
        self.add("requested", requested)
        if self.figures["reserved"][0] == self.figures["reserved"][1]:
            self.at_peak = max(self.at_peak, self.figures["allocated"][0])

    def give(self, name):
        entry = self.storage.pop(name)
        streams = self.uses.pop(name, set())
        if entry is None:
            return
        self.add("allocated", -entry[2])
        if streams:
            self.waiting.append([*entry, streams])
        else:
            self.settle(*entry)

    def run(self, trace):
        for kind, stream, name, n in trace:
            if kind == TAKE:
                self.take(stream, name, n)
            elif kind == GIVE:
                self.give(name)
            elif kind == USE:
                if self.storage[name] and self.storage[name][0].stream != stream:
                    self.uses.setdefault(name, set()).add(stream)
            elif kind == SYNC:
                self.finish({stream})
            elif kind == EMPTY:
                self.release_all()

    def result(self):
        gaps = [e - b for g in self.segments for b, e in g.gaps()]
        out = {k: tuple(v) for k, v in self.figures.items()}
        out.update(segments=(len(self.segments),), free_blocks=(len(gaps),),
                   largest_free=(max(gaps, default=0),), retries=(self.retries,),
                   failures=(self.failures,),
                   fragmentation=(self.figures["reserved"][1] - self.at_peak,))
        return out
