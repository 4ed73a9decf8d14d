// The TCP dumbbell of `make bench`, for ns-3. The same network as scenarios/bench/dumbbell-tcp.toml:
//
//   sources --- left === right --- sinks       twenty of each; === is the bottleneck, 100 Mbit/s and 10 ms
//
// It loses one packet in 2,000 in each direction, at random; four senders of UDP cross it. 60 simulated seconds, no trace. What
// favours ns-3 is what does in bulk_tcp.cc: IPv4, and no queue disciplines. Its rate of sending while it recovers is not its default's,
// PRR, with which ns-3.37 ends in a segmentation fault here (TcpRateLinux::SkbSent is given no segment).
//
//   dumbbell_tcp            run, print the delivered bytes
//   dumbbell_tcp count      the same run, with packet hops counted at the devices
//
// side_by_side.py builds it with optimisation, where the library is installed.

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <iostream>
#include <string>

using namespace ns3;

namespace
{

const uint16_t PORT = 5001;
const double DURATION_S = 60.0;
const uint32_t FLOWS = 20;
const uint32_t CROSSING = 4;
const double LOSS = 0.0005;

uint64_t g_hops = 0;
bool g_counting = false;

void
CountHop(Ptr<const Packet>)
{
    ++g_hops;
}

/** Links two nodes; what the second one's address is there. */
Ipv4Address
Link(Ptr<Node> a, Ptr<Node> b, uint32_t delayMs, const std::string& rate, const std::string& queue, double loss)
{
    static uint32_t number = 0;
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", StringValue(rate));
    link.SetChannelAttribute("Delay", TimeValue(MilliSeconds(delayMs)));
    link.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue(queue));
    NetDeviceContainer devices = link.Install(a, b);
    for (uint32_t end = 0; end < 2; ++end)
    {
        if (loss > 0)
        {
            Ptr<RateErrorModel> errors = CreateObject<RateErrorModel>();
            errors->SetUnit(RateErrorModel::ERROR_UNIT_PACKET);
            errors->SetRate(loss);
            devices.Get(end)->SetAttribute("ReceiveErrorModel", PointerValue(errors));
        }
        if (g_counting)
        {
            devices.Get(end)->TraceConnectWithoutContext("MacRx", MakeCallback(&CountHop));
        }
    }
    Ipv4AddressHelper addresses;
    addresses.SetBase(Ipv4Address(("10.0." + std::to_string(number++) + ".0").c_str()), Ipv4Mask("/24"));
    Ipv4InterfaceContainer ends = addresses.Assign(devices);
    TrafficControlHelper().Uninstall(devices);
    return ends.GetAddress(1);
}

} // namespace

int
main(int argc, char* argv[])
{
    g_counting = argc > 1 && std::string(argv[1]) == "count";
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TypeId::LookupByName("ns3::TcpCubic")));
    Config::SetDefault("ns3::TcpL4Protocol::RecoveryType", TypeIdValue(TypeId::LookupByName("ns3::TcpClassicRecovery")));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1428));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(4 << 20));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(3 << 20));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::DelAckTimeout", TimeValue(MilliSeconds(40)));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(MilliSeconds(200)));

    NodeContainer routers;
    NodeContainer sources;
    NodeContainer sinks;
    routers.Create(2);
    sources.Create(FLOWS + CROSSING);
    sinks.Create(FLOWS + CROSSING);
    InternetStackHelper stack;
    stack.SetIpv6StackInstall(false);
    for (const NodeContainer& nodes : {routers, sources, sinks})
    {
        stack.Install(nodes);
    }

    Link(routers.Get(0), routers.Get(1), 10, "100Mbps", "250p", LOSS);
    ApplicationContainer servers;
    for (uint32_t i = 0; i < FLOWS + CROSSING; ++i)
    {
        const bool bulk = i < FLOWS;
        const std::string rate = bulk ? "100Mbps" : "10Mbps";
        const uint32_t before = bulk ? 1 + i % 10 : 1 + i - FLOWS;
        const uint32_t after = bulk ? 1 + i / 10 : 1;
        Link(sources.Get(i), routers.Get(0), before, rate, "1000p", 0);
        const Ipv4Address sink = Link(routers.Get(1), sinks.Get(i), after, rate, "1000p", 0);
        const std::string factory = bulk ? "ns3::TcpSocketFactory" : "ns3::UdpSocketFactory";
        PacketSinkHelper server(factory, InetSocketAddress(Ipv4Address::GetAny(), PORT));
        ApplicationContainer received = server.Install(sinks.Get(i));
        received.Start(Seconds(0));
        servers.Add(received);
        if (bulk)
        {
            BulkSendHelper sender(factory, InetSocketAddress(sink, PORT));
            sender.SetAttribute("SendSize", UintegerValue(1428));
            sender.Install(sources.Get(i)).Start(MilliSeconds(100 * i));
        }
        else
        {
            OnOffHelper sender(factory, InetSocketAddress(sink, PORT));
            sender.SetConstantRate(DataRate("2.5Mbps"), 1000);
            sender.Install(sources.Get(i)).Start(MilliSeconds(7 * (i - FLOWS)));
        }
    }
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();

    Simulator::Stop(Seconds(DURATION_S));
    Simulator::Run();
    uint64_t delivered = 0;
    for (uint32_t i = 0; i < servers.GetN(); ++i)
    {
        delivered += DynamicCast<PacketSink>(servers.Get(i))->GetTotalRx();
    }
    std::cout << "delivered_bytes " << delivered << "\n";
    if (g_counting)
    {
        std::cout << "packet_hops " << g_hops << "\n";
    }
    Simulator::Destroy();
    return 0;
}
